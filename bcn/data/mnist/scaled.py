"""Scaled-MNIST (section 5.1), MoreScaled-MNIST and its rotated versions (appendix B.1): each digit placed once.

The width of a digit's 28x28 box is uniform in 28 .. 105 (160) pixels, height / width in 0.8 .. 1.2, the position
uniform among those with the whole box in the image; sizes and positions are multiples of 1/256 pixel. The centre of the
box is a label. A rotated version has the digits of MoreScaled-MNIST, size by size, rotated about the centre of the box;
where a digit's ink would leave the image, it is moved the least distance that keeps it whole.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from bcn.data.arrays import ArrayDataset, split_range
from bcn.data.cache import cache_directory, open_cache, write_array
from bcn.data.mnist.mnist import CLASSES, SPLITS, fetch_mnist
from bcn.data.mnist.resample import UNIT, centre_range, resize_into, rotation_matrices, warp_affine
from bcn.data.random import integers_between, philox_bits
from bcn.errors import BcnError

BLOCK = 2000
"""digits that are drawn before they are written"""


@dataclass(frozen=True)
class Canvas:
    width: int
    height: int
    max_width: int
    """the largest width of a digit's box"""
    stream: str
    """name of the random stream of sizes and positions"""
    max_degrees: int = 0
    """the largest rotation"""


CANVASES = {
    "scaled-mnist-v1": Canvas(128, 128, 105, "scaled-mnist-v1"),
    "more-scaled-mnist-v1": Canvas(256, 192, 160, "more-scaled-mnist-v1"),
    "more-scaled-mnist-10-v1": Canvas(256, 192, 160, "more-scaled-mnist-v1", max_degrees=10),
    "more-scaled-mnist-45-v1": Canvas(256, 192, 160, "more-scaled-mnist-v1", max_degrees=45),
}


def make_scaled_mnist(
    name: str, split: str, *, data: str | Path | None = None, images: int | None = None, seed: int = 0
) -> ArrayDataset:
    """The whole set is made once and cached; the first few `images` of a set that is not cached are made in memory."""
    splits = SPLITS if name == "scaled-mnist-v1" else {"test": SPLITS["test"]}
    part, start, stop = split_range(name, split, splits, images)
    kept = f"{part}-seed{seed}"
    if images is None or cache_directory(name, kept).exists():
        image, answer, centre = (array[start:stop] for array in _cached(name, part, kept, data, seed))
    else:
        digits, answer = (array[start:stop] for array in fetch_mnist(part, data=data))
        canvas = CANVASES[name]
        image = np.empty((stop - start, 1, canvas.height, canvas.width), np.uint8)
        centre = render_digits(canvas, part, start, digits, image[:, 0], seed=seed)
    return ArrayDataset(name, split, image, answer, CLASSES, centre)


def render_digits(
    canvas: Canvas, part: str, start: int, digit_NSS: np.ndarray, out_NHW: np.ndarray, *, seed: int
) -> np.ndarray:
    """Draw digits into `out_NHW` and return their centres.

    Args:
        part: of MNIST, "train" or "test".
        start: index of the first digit in that part.
    """
    stop = start + len(digit_NSS)
    box_N4 = sample_boxes(canvas, part, stop, seed=seed)[start:]
    centre_N2 = (box_N4[:, :2] + box_N4[:, 2:] / 2) / UNIT
    if canvas.max_degrees:
        rotation_N22 = rotation_matrices(sample_angles(canvas, part, stop, seed=seed)[start:])
        linear_N22 = rotation_N22 * (box_N4[:, None, 2:] / UNIT / digit_NSS.shape[1])
        low_N2, high_N2 = centre_range(digit_NSS, linear_N22, canvas.height, canvas.width)
        centre_N2 = np.clip(centre_N2, low_N2, high_N2)
        warp_affine(digit_NSS, linear_N22, centre_N2, out_NHW)
    else:
        resize_into(digit_NSS, box_N4, out_NHW)
    return (centre_N2 / (canvas.width, canvas.height)).astype(np.float32)


def sample_boxes(canvas: Canvas, part: str, count: int, *, seed: int) -> np.ndarray:
    """(count, 4) left, top, width and height of the digits' boxes in 1/256 pixel."""
    bits = philox_bits(count, 4, seed=seed, stream=f"{canvas.stream} {part}")
    width = integers_between(bits[:, 0], 28 * UNIT, canvas.max_width * UNIT)
    height = width * integers_between(bits[:, 1], 8 << 16, 12 << 16) // (10 << 16)
    left = integers_between(bits[:, 2], 0, canvas.width * UNIT - width)
    top = integers_between(bits[:, 3], 0, canvas.height * UNIT - height)
    return np.stack([left, top, width, height], axis=1)


def sample_angles(canvas: Canvas, part: str, count: int, *, seed: int) -> np.ndarray:
    """(count,) rotations in degrees, from -`canvas.max_degrees` to `canvas.max_degrees`."""
    bits = philox_bits(count, 1, seed=seed, stream=f"{canvas.stream} {part} angle")[:, 0]
    return integers_between(bits, -canvas.max_degrees << 16, canvas.max_degrees << 16) / (1 << 16)


def _cached(name: str, part: str, kept: str, data: str | Path | None, seed: int) -> list[np.ndarray]:
    """Images, classes and centres from the cache, which must be this set's and not another's."""
    arrays = open_cache(name, kept, partial(_write, name, part, data, seed))
    canvas, count = CANVASES[name], max(stop for of, _, stop in SPLITS.values() if of == part)
    shapes = {"image": (count, 1, canvas.height, canvas.width), "answer": (count,), "centre": (count, 2)}
    if {stem: array.shape for stem, array in arrays.items()} != shapes:
        directory = cache_directory(name, kept)
        raise BcnError(f"{directory} holds other arrays than {name} has: remove it and run `bcn data make {name}`")
    return [arrays[stem] for stem in shapes]


def _write(name: str, part: str, data: str | Path | None, seed: int, directory: Path) -> None:
    digits, labels = fetch_mnist(part, data=data)
    canvas, centre = CANVASES[name], np.empty((len(digits), 2), np.float32)

    def blocks() -> Iterator[np.ndarray]:
        for start in range(0, len(digits), BLOCK):
            block = slice(start, start + BLOCK)
            image = np.empty((len(digits[block]), 1, canvas.height, canvas.width), np.uint8)
            centre[block] = render_digits(canvas, part, start, digits[block], image[:, 0], seed=seed)
            yield image

    shape = (len(digits), 1, canvas.height, canvas.width)
    write_array(directory / "image.npy", blocks(), shape=shape, dtype=np.dtype(np.uint8))
    np.save(directory / "answer.npy", labels)
    np.save(directory / "centre.npy", centre)
