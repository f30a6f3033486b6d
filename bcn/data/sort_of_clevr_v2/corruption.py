"""Corruptions of exact pictures, each the same for all images of a test set; variety mixes them.

N images, W random words of each.
"""

import numpy as np

from bcn.data.random import splitmix64
from bcn.data.sort_of_clevr.scene import SIDE
from bcn.data.sort_of_clevr_v2.jpeg import compress

OFF_WHITE = 200
JPEG_QUALITY = 75
VARIETY_WORD = 10
"""of a sample: the seed of all that is random about its picture alone"""
NOISE_WORD = 64
WHOLE_NOISE = 8
"""the amplitude of the test set: a standard deviation of 9.2 levels"""


def soften(image_N3HW: np.ndarray) -> np.ndarray:
    """Soft edges: every pixel the mean of its neighbourhood with weights 1, 2, 1 in both directions."""
    wide = np.pad(image_N3HW.astype(np.uint16), ((0, 0), (0, 0), (1, 1), (1, 1)), mode="edge")
    rows = wide[:, :, :-2] + 2 * wide[:, :, 1:-1] + wide[:, :, 2:]
    soft: np.ndarray = (rows[..., :-2] + 2 * rows[..., 1:-1] + rows[..., 2:] + 8) >> 4
    return soft.astype(np.uint8)


def tint_ground(image_N3HW: np.ndarray) -> np.ndarray:
    """White becomes off-white."""
    white_N1HW = (image_N3HW == 255).all(axis=1, keepdims=True)
    return np.where(white_N1HW, np.uint8(OFF_WHITE), image_N3HW)


def add_noise(image_N3HW: np.ndarray, variety_N: np.ndarray, amplitude_N: np.ndarray) -> np.ndarray:
    """Nearly normal noise: of each number the sum of four random digits below 16, less its mean.

    Args:
        variety_N: the seeds of what is random about the pictures.
        amplitude_N: in eighths.
    """
    pixels = 3 * SIDE**2
    word_NW = splitmix64(variety_N[:, None], NOISE_WORD + np.arange(-(-pixels // 4)))
    pairs = (word_NW & _every(8, 15)) + (word_NW >> np.uint64(4) & _every(8, 15))
    digits = (pairs & _every(16, 255)) + (pairs >> np.uint64(8) & _every(16, 255))
    noise_N3HW = digits.astype("<u8").view("<u2")[:, :pixels].astype(np.int16).reshape(image_N3HW.shape) - 30
    noise_N3HW = (noise_N3HW * amplitude_N.astype(np.int16)[:, None, None, None] + 4) >> 3
    return (image_N3HW + noise_N3HW).clip(0, 255).astype(np.uint8)


def _every(bits: int, value: int) -> np.uint64:
    """A word that holds the value once in every so many bits."""
    return np.uint64(sum(value << start for start in range(0, 64, bits)))


def _noise_all(image_N3HW: np.ndarray, sample_N: np.ndarray) -> np.ndarray:
    return add_noise(image_N3HW, splitmix64(sample_N, VARIETY_WORD), np.full(len(sample_N), WHOLE_NOISE))


CORRUPTIONS = {
    "jpeg75": lambda image, sample: compress(image, np.full(len(sample), JPEG_QUALITY)),
    "soft": lambda image, sample: soften(image),
    "off-white": lambda image, sample: tint_ground(image),
    "noise": _noise_all,
}
"""from exact images and the seeds of their samples"""
