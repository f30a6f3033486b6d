"""Scaled-MNIST for segmentation: every pixel is background, or one of the ink of a digit, whose class it has.

What a pixel of a digit 105 pixels wide belongs to, its neighbourhood does not say: a network has to see all of it.

B images, H x W = n pixels.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from bcn.data.arrays import ArrayDataset
from bcn.data.dataset import Batch, Dataset
from bcn.data.mnist.scaled import make_scaled_mnist

NAME, IMAGES = "scaled-mnist-masks-v1", "scaled-mnist-v1"
INK = 128
"""pixels from here on belong to the digit"""


class DigitMasks(Dataset):
    """Images of Scaled-MNIST with an answer for each pixel, row by row: (B, n)."""

    name, kinds, dense = NAME, (), True

    def __init__(self, digits: ArrayDataset) -> None:
        self.digits, self.split, self.preprocessing = digits, digits.split, digits.preprocessing
        self.answers = ("background", *digits.answers)

    def __len__(self) -> int:
        return len(self.digits)

    def batch(self, index: Sequence[int] | np.ndarray) -> Batch:
        digits = self.digits.batch(index)
        ink_Bn = digits.image.flatten(1) >= INK
        return Batch(digits.image, torch.where(ink_Bn, digits.answer[:, None] + 1, 0))

    def checksum(self) -> str:
        """Of the images and their classes, which decide the masks."""
        return self.digits.checksum()


def make_digit_masks(
    split: str, *, data: str | Path | None = None, images: int | None = None, seed: int = 0
) -> DigitMasks:
    return DigitMasks(make_scaled_mnist(IMAGES, split, data=data, images=images, seed=seed))
