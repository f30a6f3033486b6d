"""Boxes of CLEVR-like objects with and without a BCN: `python examples/detect_objects.py` (needs the extra render)."""

import sys

import numpy as np
import torch
from torch import Tensor, nn

import bcn
from bcn.data.clevr_like.boxes import LABELS, visible_boxes
from bcn.data.clevr_like.render import render_scene
from bcn.data.clevr_like.scene import make_scene
from bcn.models.centre_net import CentreNet, decode, detection_loss
from bcn.training.average_precision import Detections, average_precision


def scenes(split: str, count: int) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    drawn = [make_scene(index, split=split) for index in range(count)]
    images = np.stack([render_scene(scene) for scene in drawn])
    boxes = [visible_boxes(scene) for scene in drawn]
    pixels = torch.from_numpy(images).permute(0, 3, 1, 2) / 255 - 0.46
    return pixels, [torch.from_numpy(each.box) for each in boxes], [torch.from_numpy(each.label) for each in boxes]


def main(train: int = 1000, test: int = 100, epochs: int = 10) -> dict[str, float]:
    (image, box, label), unseen, scores = scenes("train", train), scenes("test", test), {}
    true = [Detections(boxes, labels, torch.ones(len(labels))) for boxes, labels in zip(*unseen[1:], strict=True)]
    for name, middle in {"CentreNet": nn.Identity(), "with a BCN": bcn.BroadcastBlock(64, (64, 64, 128))}.items():
        model = CentreNet(len(LABELS), middle)
        optimiser = torch.optim.Adam(model.parameters(), lr=2e-3)
        for epoch in range(epochs):
            for part in torch.randperm(train).split(16):
                loss = detection_loss(model(image[part]), [box[n] for n in part], [label[n] for n in part])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
            print(f"{name}, epoch {epoch + 1}: loss {loss:.3f}")
        with torch.inference_mode():
            given = [Detections(*found) for found in decode(model.eval()(unseen[0]))]
        scores[name] = average_precision(given, true)
        print(f"{name}: AP {scores[name]:.3f} at an overlap of one half")
    return scores


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
