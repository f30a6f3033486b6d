"""Bilinear resampling of many small images at once, bit-identical on every machine and with any number of threads.

Positions are whole numbers of 1/256 pixel and the weights of an axis are 1/256ths that add up to 1. A pixel of 8 bits
times two weights of 8 bits is 24 bits, which float32 holds without rounding, so a matrix product may add in any order.
There is no antialiasing: the data sets that use this shrink an image by a fifth at most.

N source images (`picture`) of S x S pixels become images of H x W pixels.
"""

from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

UNIT = 256
"""positions in a pixel"""
RESIZE_CHUNK, WARP_CHUNK = 64, 4
"""pictures that are processed at a time, so that they stay in the processor's cache"""


def resize_into(picture_NSS: np.ndarray, box_N4: np.ndarray, out_NHW: np.ndarray) -> None:
    """Resize each picture into its box (left, top, width, height in 1/256 pixel) of a black image.

    Pixels whose centres lie in the box are interpolated between the centres of the picture's pixels, and repeat its
    border beyond the outermost centres; the others are 0.
    """
    size = picture_NSS.shape[1]
    out_NHW[...] = 0
    for chunk, first_N2, window_2 in _windows(
        box_N4[:, :2] / UNIT, (box_N4[:, :2] + box_N4[:, 2:]) / UNIT, out_NHW, RESIZE_CHUNK
    ):
        start_N2 = (box_N4[chunk, :2] - first_N2 * UNIT).astype(np.int32)
        length_N2 = box_N4[chunk, 2:].astype(np.int32)
        across_NWS, down_NHS = (
            _weights(size).take(_positions(start_N2[:, axis], length_N2[:, axis], window_2[axis], size), axis=0)
            for axis in (0, 1)
        )
        wide_NSW = picture_NSS[chunk].astype(np.float32) @ across_NWS.transpose(0, 2, 1)
        wide_NSW += 0.5  # to round: the weights of a row inside the box add up to 1, those outside to 0
        _write_windows(out_NHW, chunk, first_N2, (down_NHS @ wide_NSW).astype(np.uint8))


def _windows(
    low_N2: np.ndarray, high_N2: np.ndarray, image_NHW: np.ndarray, count: int
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Chunks of `count` pictures, sorted by size, so that those of a chunk need windows of about one size.

    Each picture reaches from `low` to `high` in x and y. Yields the indices of the pictures, the first pixel (x, y)
    of each one's window, and the width and height of the windows.
    """
    limit_2 = np.array(image_NHW.shape[:0:-1])
    order = np.argsort((high_N2 - low_N2).max(axis=1), kind="stable")
    for start in range(0, len(order), count):
        chunk = order[start : start + count]
        first_N2 = np.clip(np.floor(low_N2[chunk]).astype(int), 0, limit_2)
        last_N2 = np.clip(np.ceil(high_N2[chunk]).astype(int), 0, limit_2)
        window_2 = (last_N2 - first_N2).max(axis=0)
        yield chunk, np.minimum(first_N2, limit_2 - window_2), window_2


def _write_windows(image_NHW: np.ndarray, chunk: np.ndarray, first_N2: np.ndarray, block: np.ndarray) -> None:
    windows = sliding_window_view(image_NHW, block.shape[1:], axis=(1, 2), writeable=True)
    windows[chunk, first_N2[:, 1], first_N2[:, 0]] = block


def _positions(start: np.ndarray, length: np.ndarray, pixels: int, size: int) -> np.ndarray:
    """Where the image's pixels fall in the picture, 0 being the centre of its first pixel; -1 outside the box."""
    distance = np.arange(pixels, dtype=np.int32) * UNIT + UNIT // 2 - start[:, None]
    length = length[:, None]
    position: np.ndarray = (distance * (size * UNIT) + length // 2) // length - UNIT // 2
    np.clip(position, 0, (size - 1) * UNIT, out=position)
    position[(distance < 0) | (distance >= length)] = -1
    return position


@cache
def _weights(size: int) -> np.ndarray:
    """The weights of a picture's pixels for every position; the last row, for position -1, is zero."""
    distance = np.abs(np.arange((size - 1) * UNIT + 1)[:, None] - np.arange(size) * UNIT)
    weights = np.maximum(0, 1 - distance / UNIT)
    return np.concatenate([weights, np.zeros((1, size))]).astype(np.float32)


def warp_affine(picture_NSS: np.ndarray, linear_N22: np.ndarray, centre_N2: np.ndarray, out_NHW: np.ndarray) -> None:
    """Transform each picture by a matrix about its centre, which comes to `centre` (x, y) of a black image.

    `linear` maps (x, y) offsets in the picture to offsets in the image. Beyond its outermost pixels a picture is 0.
    """
    size = picture_NSS.shape[1]
    side = size + 3  # a border of zeros: one before, two after
    bordered = np.pad(picture_NSS, ((0, 0), (1, 2), (1, 2))).astype(np.int32)
    out_NHW[...] = 0
    centre_N2 = np.round(centre_N2 * 2**16) / 2**16  # so that it can be moved by whole pixels without rounding
    reach_N2 = np.abs(linear_N22).sum(axis=2) * (size / 2 + 0.5)
    for chunk, first_N2, window_2 in _windows(centre_N2 - reach_N2, centre_N2 + reach_N2, out_NHW, WARP_CHUNK):
        x, y = _sources(linear_N22[chunk], centre_N2[chunk] - first_N2, window_2, size)
        offset = (np.arange(len(chunk)) * side**2)[:, None, None] + ((y >> 8) * side + (x >> 8))
        x &= UNIT - 1
        y &= UNIT - 1
        flat = bordered[chunk].reshape(-1)
        offset += side + 1
        above = flat.take(offset) * (UNIT - x) + flat[1:].take(offset) * x
        below = flat[side:].take(offset) * (UNIT - x) + flat[side + 1 :].take(offset) * x
        _write_windows(
            out_NHW, chunk, first_N2, ((above * (UNIT - y) + below * y + UNIT**2 // 2) >> 16).astype(np.uint8)
        )


def rotation_matrices(degrees: np.ndarray) -> np.ndarray:
    """(N, 2, 2) matrices that rotate by `degrees`, counter-clockwise where y points down the image.

    Sine and cosine differ between machines in their last bit, so they are rounded far above it.
    """
    cosine, sine = (np.round(part(np.radians(degrees)) * 2**24) / 2**24 for part in (np.cos, np.sin))
    return np.stack([np.stack([cosine, sine], -1), np.stack([-sine, cosine], -1)], -2)


def centre_range(
    picture_NSS: np.ndarray, linear_N22: np.ndarray, height: int, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest centre (x, y) at which `warp_affine` keeps all of a picture's ink in the image."""
    size = picture_NSS.shape[1]
    low, high = [], []
    for axis in (1, 2):  # the extent of the ink in x, then in y; interpolation spreads it by half a pixel
        ink_NS: np.ndarray = np.asarray(picture_NSS.any(axis=axis))
        low.append(ink_NS.argmax(axis=1) - 0.5 - size / 2)
        high.append(size - ink_NS[:, ::-1].argmax(axis=1) + 0.5 - size / 2)
    x_N4 = np.stack([low[0], high[0], low[0], high[0]], 1)
    y_N4 = np.stack([low[1], low[1], high[1], high[1]], 1)
    corners = [linear_N22[:, row, :1] * x_N4 + linear_N22[:, row, 1:] * y_N4 for row in (0, 1)]
    lowest = np.stack([-offset.min(axis=1) for offset in corners], 1)
    highest = np.stack([side - offset.max(axis=1) for offset, side in zip(corners, (width, height), strict=True)], 1)
    return lowest, highest


def _sources(
    linear_N22: np.ndarray, centre_N2: np.ndarray, window_2: np.ndarray, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Where the centres of a window's pixels fall in the picture, in 1/256 pixel; (N, height, width) x and y."""
    width, height = window_2
    (a, b), (c, d) = linear_N22.transpose(1, 2, 0)[..., None]
    determinant = a * d - b * c
    across, down = np.arange(width) + 0.5 - centre_N2[:, :1], np.arange(height) + 0.5 - centre_N2[:, 1:]

    def position(over_x: np.ndarray, over_y: np.ndarray) -> np.ndarray:
        along_NW = _fixed(over_x / determinant * across + size / 2 - 0.5)
        along_NH = _fixed(over_y / determinant * down)
        fine_NHW: np.ndarray = along_NH[:, :, None] + (along_NW + UNIT // 2)[:, None, :]
        fine_NHW >>= 8  # rounded to 1/256
        np.clip(fine_NHW, -UNIT, size * UNIT, out=fine_NHW)
        return fine_NHW

    return position(d, -b), position(-c, a)


def _fixed(pixels: np.ndarray) -> np.ndarray:
    return np.floor(pixels * UNIT * 256 + 0.5).astype(np.int32)
