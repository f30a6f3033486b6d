"""A batch is images, each with all of its questions (idea 2 of the design).

B images, Q questions about each, D numbers in a question, C channels, H x W pixels.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor


class Batch(NamedTuple):
    image: Tensor
    """(B, C, H, W) uint8"""
    answer: Tensor
    """(B, Q) index of the answer; (B,) index of the class where nothing is asked"""
    question: Tensor | None = None
    """(B, Q, D) float"""
    kind: Tensor | None = None
    """(B, Q) index of the kind of question"""
    centre: Tensor | None = None
    """(B, 2) x and y of the object's centre, in units of the image's sides"""


@dataclass(frozen=True)
class Preprocessing:
    """uint8 pixels to what a model sees: (pixel / 255 - mean) / std, channel by channel."""

    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)

    def __call__(self, image_BCHW: Tensor) -> Tensor:
        mean = torch.tensor(self.mean, device=image_BCHW.device).view(-1, 1, 1)
        std = torch.tensor(self.std, device=image_BCHW.device).view(-1, 1, 1)
        return (image_BCHW.float() - 255 * mean) / (255 * std)
