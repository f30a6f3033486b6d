"""Boxes of CLEVR-like objects with and without a BCN: `python examples/detect_objects.py` (needs the extra render)."""

import sys

import torch
from PIL import Image, ImageDraw
from torch import Tensor, nn
from torch.utils.data import DataLoader

import bcn
from bcn.data.dataset import Dataset
from bcn.data.registry import open_dataset
from bcn.models.centre_net import CentreNet, detection_loss
from bcn.training.average_precision import read_detections
from bcn.training.metrics import evaluate


def train(model: nn.Module, dataset: Dataset, epochs: int) -> None:
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(epochs):
        for batch in DataLoader(dataset, batch_size=16, shuffle=True):
            logits, box = model(dataset.preprocessing(batch["image"]))
            loss = detection_loss(logits, box, batch["answer"], batch["box"]) / len(logits)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        print(f"epoch {epoch + 1}: loss {loss:.3f}")


@torch.inference_mode()
def draw(model: nn.Module, dataset: Dataset, images: int = 6) -> Tensor:
    batch, pictures = dataset[range(images)], []
    found = read_detections(*model.eval()(dataset.preprocessing(batch.image)), batch.box)
    for image, boxes in zip(batch.image, found, strict=True):
        picture = Image.fromarray(image.permute(1, 2, 0).numpy())
        for box in boxes.box_T4[boxes.score_T > 0.3]:
            ImageDraw.Draw(picture).rectangle((128 * box).tolist(), outline="red")
        pictures.append(torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8).view(128, 128, 3))
    return torch.cat(pictures, dim=1)


def main(train_images: int = 1000, test_images: int = 100, epochs: int = 10) -> dict[str, float]:
    torch.manual_seed(0)
    data = open_dataset("clevr-boxes-v1", "train", images=train_images)
    test, scores, rows = open_dataset("clevr-boxes-v1", "test", images=test_images), dict[str, float](), []
    for name, middle in {"CentreNet": nn.Identity(), "with a BCN": bcn.BroadcastBlock(64, (64, 64, 128))}.items():
        train(model := CentreNet(len(data.answers), middle), data, epochs)
        scores[name] = evaluate(model, test, batch_size=16).average_precision or 0.0
        print(f"{name}: AP {scores[name]:.3f} at an overlap of one half")
        rows.append(draw(model, test))
    Image.fromarray(torch.cat(rows).numpy()).save("boxes.png")  # without and with a BCN
    return scores


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
