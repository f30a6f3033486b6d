"""A U-Net with and without a BCN on masks of digits: `python examples/segment_digits.py` takes minutes."""

import sys

import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

import bcn
from bcn.data.registry import open_dataset
from bcn.models.unet import UNet
from bcn.training.metrics import mean_iou

COLOURS = torch.tensor([[0, 0, 0], *([255 - 25 * n, 80 + 17 * n, 25 * n] for n in range(10))], dtype=torch.uint8)


def train(model: nn.Module, images: int, epochs: int) -> None:
    loader = DataLoader(open_dataset("scaled-mnist-masks-v1", "train", images=images), batch_size=32, shuffle=True)
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(epochs):
        for batch in loader:
            loss = cross_entropy(model(batch["image"] / 255).flatten(0, 1), batch["answer"].flatten())
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        print(f"epoch {epoch + 1}: loss {loss:.3f}")


@torch.inference_mode()
def evaluate(model: nn.Module, images: int) -> tuple[float, Tensor]:
    test, counts = open_dataset("scaled-mnist-masks-v1", "test", images=images), torch.zeros(121)
    given = [model.eval()(batch["image"] / 255).argmax(2) for batch in DataLoader(test, batch_size=32)]
    pairs = 11 * test[range(images)].answer.flatten() + torch.cat(given).flatten()
    return mean_iou(counts.index_add_(0, pairs, torch.ones(len(pairs))).view(11, 11)), torch.cat(given)


def main(train_images: int = 5000, test_images: int = 500, epochs: int = 3) -> dict[str, float]:
    test = open_dataset("scaled-mnist-masks-v1", "test", images=8)[range(8)]
    shown, scores = (
        [test.image.expand(-1, 3, -1, -1), COLOURS[test.answer].view(8, 128, 128, 3).permute(0, 3, 1, 2)],
        {},
    )
    for name, middle in {"U-Net": nn.Identity(), "with a BCN": bcn.BroadcastBlock(64, (64, 64, 128))}.items():
        train(model := UNet(1, 11, middle), train_images, epochs)
        scores[name], given = evaluate(model, test_images)
        print(f"{name}: mean IoU {scores[name]:.3f}")
        shown.append(COLOURS[given[:8]].view(8, 128, 128, 3).permute(0, 3, 1, 2))
    picture = torch.cat([torch.cat(list(row), dim=2) for row in shown], dim=1)  # image, truth, without, with
    Image.fromarray(picture.permute(1, 2, 0).numpy()).save("masks.png")
    return scores


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
