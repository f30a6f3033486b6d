"""Varied pictures of a scene: anti-aliased edges, sub-pixel centres, sizes, tilt, ground, soft edges, noise, JPEG.

Centres move against each other by less than half a pixel, so that questions and answers are those of the exact picture.
Everything is in integers: lengths in sixteenths of a pixel, and 4 x 4 points of each pixel are inside an object or not.

N scenes, K objects at most, M objects in all, U = 15 pixels and S = 60 points across the patch that one is drawn in.
"""

import numpy as np

from bcn.data.random import splitmix64
from bcn.data.sort_of_clevr.drawing import RGB, WHITE
from bcn.data.sort_of_clevr.scene import SIDE
from bcn.data.sort_of_clevr_v2.corruption import VARIETY_WORD, add_noise, soften
from bcn.data.sort_of_clevr_v2.drawing import draw_scenes
from bcn.data.sort_of_clevr_v2.jpeg import compress
from bcn.data.sort_of_clevr_v2.scene import Scenes

UNIT = 16
"""parts of a pixel"""
REACH = 7
"""pixels that an object is drawn in, on either side of its whole centre"""
ACROSS = 2 * REACH + 1
MARGIN = 2
"""pixels by which a patch may leave the image"""
SLOPE = 32
"""a tilt of k has the tangent k / 32"""
POINT_S = (UNIT * np.arange(-REACH, REACH + 1)[:, None] + np.array([-6, -2, 2, 6])).reshape(-1).astype(np.int32)
"""where the points are, from the whole centre"""


def draw_varied(scenes: Scenes, sample_N: np.ndarray) -> np.ndarray:
    """Images (N, 3, 75, 75) uint8; a quarter of them exact."""
    variety_N = splitmix64(sample_N, VARIETY_WORD)
    exact_N = _bits(splitmix64(variety_N, 0), 0, 2) == 0
    image_N3HW = np.empty((len(sample_N), 3, SIDE, SIDE), dtype=np.uint8)
    image_N3HW[exact_N] = draw_scenes(Scenes(*(part[exact_N] for part in scenes)))
    image_N3HW[~exact_N] = _vary(Scenes(*(part[~exact_N] for part in scenes)), variety_N[~exact_N])
    return image_N3HW


def _vary(scenes: Scenes, variety_N: np.ndarray) -> np.ndarray:
    word_N = splitmix64(variety_N, 0)
    soft_N, jpeg_N = _bits(word_N, 28, 2) == 0, _bits(word_N, 33, 1) == 1
    image_N3HW = _draw(scenes, variety_N, word_N)
    image_N3HW[soft_N] = soften(image_N3HW[soft_N])
    image_N3HW = add_noise(image_N3HW, variety_N, _bits(word_N, 30, 3))
    image_N3HW[jpeg_N] = compress(image_N3HW[jpeg_N], 60 + 5 * _bits(word_N[jpeg_N], 34, 3))
    return image_N3HW


def _draw(scenes: Scenes, variety_N: np.ndarray, word_N: np.ndarray) -> np.ndarray:
    """Objects over the ground, one after the other, with soft edges where they cover a part of a pixel."""
    number, side = len(word_N), SIDE + 2 * MARGIN
    ground_N3 = WHITE - np.stack([_bits(word_N, first, 6) for first in (4, 10, 16)], axis=1)
    ground_N3[_bits(word_N, 2, 2) == 0] = WHITE
    image_NHW3 = np.broadcast_to(ground_N3[:, None, None], (number, side, side, 3)).astype(np.int16)
    row_M, k_M = np.nonzero(scenes.present)
    own_M = splitmix64(variety_N[row_M], 1 + k_M)
    x_M, y_M = (
        2 * (_bits(word_N, common, 3) - 4)[row_M] + 2 * (_bits(own_M, first, 2) - 2)
        for common, first in ((22, 0), (25, 2))
    )
    size_M, tilt_M, circle_M = 60 + 4 * _bits(own_M, 4, 3), _bits(own_M, 7, 4) - 8, scenes.shape[row_M, k_M] == 1
    covered_MUU = np.empty((len(row_M), ACROSS, ACROSS), dtype=np.int16)
    covered_MUU[circle_M] = _cover(x_M[circle_M], y_M[circle_M], size_M[circle_M], None)
    covered_MUU[~circle_M] = _cover(x_M[~circle_M], y_M[~circle_M], size_M[~circle_M], tilt_M[~circle_M])
    rgb_M113 = np.array(RGB, dtype=np.int16)[scenes.colour[row_M, k_M]][:, None, None]
    left_MU, top_MU = (
        of[row_M, k_M, None] + np.arange(MARGIN - REACH, MARGIN + REACH + 1) for of in (scenes.x, scenes.y)
    )
    for k in range(scenes.x.shape[1]):
        of_k = np.flatnonzero(k_M == k)
        place = row_M[of_k, None, None], top_MU[of_k, :, None], left_MU[of_k, None]
        share = covered_MUU[of_k, :, :, None]
        image_NHW3[place] = (image_NHW3[place] * (16 - share) + rgb_M113[of_k] * share + 8) >> 4
    return image_NHW3[:, MARGIN:-MARGIN, MARGIN:-MARGIN].transpose(0, 3, 1, 2).astype(np.uint8)


def _cover(x_M: np.ndarray, y_M: np.ndarray, size_M: np.ndarray, tilt_M: np.ndarray | None) -> np.ndarray:
    """(M, U, U) how many of the 16 points of each pixel an object covers.

    Args:
        x_M, y_M: of the centre, from a whole pixel.
        size_M: half the side of a square, the radius of a circle.
        tilt_M: of a square; None for circles.
    """
    x_M1S, y_MS1 = (POINT_S - x_M[:, None])[:, None], (POINT_S - y_M[:, None])[:, :, None]
    size_M11 = size_M[:, None, None]
    if tilt_M is None:
        inside_MSS = (x_M1S**2).astype(np.int32) + (y_MS1**2).astype(np.int32) <= size_M11**2
    else:
        tilt_M11 = tilt_M[:, None, None]
        limit_M11 = np.sqrt(size_M11**2 * (SLOPE**2 + tilt_M11**2)).astype(np.int16)
        along, across = ((SLOPE * x_M1S, tilt_M11 * y_MS1), (-tilt_M11 * x_M1S, SLOPE * y_MS1))
        inside_MSS = np.ones((len(x_M), *2 * POINT_S.shape), dtype=bool)
        for part_M1S, part_MS1 in (along, across):
            inside_MSS &= abs(part_M1S.astype(np.int16) + part_MS1.astype(np.int16)) <= limit_M11
    # the four points in a row of a pixel are four bytes of a word, whose sum a multiplication puts into its high byte
    words_MUU = inside_MSS.view("<u4").reshape(-1, ACROSS, 4, ACROSS).sum(axis=2, dtype=np.uint32)
    covered_MUU: np.ndarray = words_MUU * np.uint32(0x01010101) >> np.uint32(24)
    return covered_MUU


def _bits(word: np.ndarray, first: int, count: int) -> np.ndarray:
    """Some bits of each word as a number."""
    return (word >> np.uint64(first) & np.uint64(2**count - 1)).astype(np.int64)
