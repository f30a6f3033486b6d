"""A scene is data: for each of six colours whether there is an object, where its centre is, and its shape.

Two rules make scenes: `scenes_v1`, ours, and `scenes_legacy`, the public generator's with its faults. Both are
functions of the samples' seeds alone, in integers only. docs/reference/sort-of-clevr.md is their specification.

N scenes, K = 6 colours, T attempts to place the objects, M arrangements that do not overlap.
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np

from bcn.data.random import integers_below, sample_without_replacement, splitmix64
from bcn.errors import BcnError

COLOURS = ("red", "green", "blue", "orange", "gray", "yellow")
SHAPES = ("square", "circle")
OBJECTS = range(2, 7)
"""how many a scene of v1 may have"""
SIDE = 75
RADIUS = 5
MIDDLE = SIDE // 2
"""the middle column and row: the sides are odd"""

SHAPE_WORD = 0
PRESENT_WORD = 1
CENTRE_WORD = 64
"""the first word of the attempts, of which there may be any number"""


FAR = np.int16(1 << 14)
"""more than any squared distance, in a bit of its own"""
_OWN_KK1 = FAR * np.eye(6, dtype=np.int16)[:, :, None]
_OUTSIDE_K11 = np.array([-6, -17, -28, 80, 91, 102], dtype=np.int8)[:, None, None]
"""x of objects that are not present: far from each other and from all that are, and still an int8"""


class Scenes(NamedTuple):
    """Integer arrays of (N, 6), one column per colour; where no object is present the other three mean nothing."""

    x: np.ndarray
    y: np.ndarray
    shape: np.ndarray
    """index in SHAPES"""
    present: np.ndarray
    """bool"""


def scenes_v1(sample_N: np.ndarray, *, objects: int = 6) -> Scenes:
    """Shapes are fair coins; given the shapes, every valid arrangement of the centres has the same probability.

    The centres of a scene are drawn together, and drawn again together until none overlap and none are ambiguous.
    """
    if objects not in OBJECTS:
        raise BcnError(f"objects={objects}: a scene has {OBJECTS[0]} to {OBJECTS[-1]} objects")
    shape_NK, present_NK = _shapes(sample_N), _present(sample_N, objects)
    x_NK, y_NK = np.zeros((2, len(sample_N), 6), dtype=np.int16)
    waiting, first = np.arange(len(sample_N)), 0
    while len(waiting):
        attempts = min(max(6, 4096 // len(waiting)), 64)
        x_KNT, y_KNT = _attempts(sample_N[waiting, None], first + np.arange(attempts))
        if objects < 6:
            x_KNT = np.where(present_NK[waiting, None].transpose(2, 0, 1), x_KNT, _OUTSIDE_K11)
        apart = np.flatnonzero(~_overlap(x_KNT, y_KNT))
        x_KM, y_KM = (of_KNT.reshape(6, -1).take(apart, axis=1) for of_KNT in (x_KNT, y_KNT))
        row_M = apart // attempts
        shape_KM, present_KM = (of_NK.T.take(waiting[row_M], axis=1) for of_NK in (shape_NK, present_NK))
        clear = np.flatnonzero(~_ambiguous(x_KM, y_KM, shape_KM, present_KM))
        accepted = clear[np.diff(row_M[clear], prepend=-1) > 0]  # the first of each row
        row = row_M[accepted]
        x_NK[waiting[row]], y_NK[waiting[row]] = x_KM[:, accepted].T, y_KM[:, accepted].T
        waiting = np.delete(waiting, row)
        first += attempts
    return Scenes(x_NK, y_NK, shape_NK, present_NK)


def scenes_legacy(sample_N: np.ndarray) -> Scenes:
    """Colour after colour is placed anywhere inside the image whose centre is at least 10 pixels from all before it."""
    x_NK, y_NK = np.zeros((2, len(sample_N), 6), dtype=np.int16)
    waiting, attempts = np.arange(len(sample_N)), 4
    while len(waiting):
        number_KT = CENTRE_WORD + np.arange(6)[:, None] + 8 * np.arange(attempts)
        word_KTN = splitmix64(sample_N[waiting], number_KT[:, :, None])
        x_KTN, y_KTN = (
            (RADIUS + integers_below(SIDE - 2 * RADIUS, high_KTN)).astype(np.int16)
            for high_KTN in (word_KTN, word_KTN << np.uint64(32))
        )
        column = np.arange(len(waiting))
        chosen: list[tuple[np.ndarray, np.ndarray]] = []
        placed_N = np.ones(len(waiting), dtype=bool)
        for x_TN, y_TN in zip(x_KTN, y_KTN, strict=True):
            free_TN = np.ones(x_TN.shape, dtype=bool)
            for x_N, y_N in chosen:
                free_TN &= (x_TN - x_N) ** 2 + (y_TN - y_N) ** 2 >= (2 * RADIUS) ** 2
            attempt_N = free_TN.argmax(axis=0)
            placed_N &= free_TN[attempt_N, column]
            chosen.append((x_TN[attempt_N, column], y_TN[attempt_N, column]))
        x_NK[waiting], y_NK[waiting] = (np.stack(part, axis=1) for part in zip(*chosen, strict=True))
        waiting, attempts = waiting[~placed_N], 4 * attempts
    return Scenes(x_NK, y_NK, _shapes(sample_N), np.ones_like(x_NK, dtype=bool))


def _shapes(sample_N: np.ndarray) -> np.ndarray:
    return (splitmix64(sample_N, SHAPE_WORD)[:, None] >> np.arange(6, dtype=np.uint64)).astype(np.uint8) & 1


def _present(sample_N: np.ndarray, objects: int) -> np.ndarray:
    present_NK = np.full((len(sample_N), 6), objects == 6)
    if objects < 6:
        chosen = sample_without_replacement(splitmix64(sample_N[:, None], PRESENT_WORD + np.arange(6)), objects)
        np.put_along_axis(present_NK, chosen, True, axis=1)
    return present_NK


def _attempts(sample_N1: np.ndarray, number_T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x and y of (6, N, T): six bits each are one of the 64 numbers from 5 to 69 that are not the middle."""
    low_NT, high_NT = (splitmix64(sample_N1, CENTRE_WORD + 2 * number_T + part) for part in (0, 1))
    bits_KNT = np.empty((6, *low_NT.shape), dtype=np.uint16)
    for colour in range(5):
        bits_KNT[colour] = low_NT >> np.uint64(12 * colour)
    bits_KNT[5] = high_NT
    x_KNT, y_KNT = (bits_KNT & 63).astype(np.int8), (bits_KNT >> 6 & 63).astype(np.int8)
    return RADIUS + x_KNT + (x_KNT >= MIDDLE - RADIUS), RADIUS + y_KNT + (y_KNT >= MIDDLE - RADIUS)


def _overlap(x_KNT: np.ndarray, y_KNT: np.ndarray) -> np.ndarray:
    """Whether any two bounding boxes share a pixel."""
    closest_NT = np.full(x_KNT.shape[1:], SIDE, dtype=np.int8)
    for a, b in combinations(range(6), 2):
        apart_NT = np.maximum(abs(x_KNT[a] - x_KNT[b]), abs(y_KNT[a] - y_KNT[b]))
        np.minimum(closest_NT, apart_NT, out=closest_NT)
    overlap_NT: np.ndarray = closest_NT <= 2 * RADIUS
    return overlap_NT


def _ambiguous(x_KN: np.ndarray, y_KN: np.ndarray, shape_KN: np.ndarray, present_KN: np.ndarray) -> np.ndarray:
    """Whether the nearest square and circle of any object, or the furthest, are less than a pixel apart in distance."""
    square_KKN = squared_distances(x_KN, y_KN)
    nearest, furthest = [], []
    for shape in (0, 1):
        # all bits where an object of this shape is, none elsewhere: masking is quicker than choosing
        here_KN = -(present_KN & (shape_KN == shape)).astype(np.int16)
        furthest.append((square_KKN & here_KN).max(axis=1).astype(np.int32))
        elsewhere_KN = ~here_KN & FAR
        nearest.append((square_KKN | _OWN_KK1 | elsewhere_KN).min(axis=1).astype(np.int32))
    ambiguous_KN = (_within_a_pixel(*nearest) | _within_a_pixel(*furthest)) & present_KN
    ambiguous_N: np.ndarray = ambiguous_KN.any(axis=0)
    return ambiguous_N


def squared_distances(x_KN: np.ndarray, y_KN: np.ndarray) -> np.ndarray:
    """(6, 6, N) from each object to each."""
    x_KN, y_KN = x_KN.astype(np.int16), y_KN.astype(np.int16)
    square_KKN: np.ndarray = (x_KN[:, None] - x_KN) ** 2 + (y_KN[:, None] - y_KN) ** 2
    return square_KKN


def _within_a_pixel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """|sqrt(a) - sqrt(b)| < 1, in integers: with a <= b it is b - a - 1 < 2 sqrt(a)."""
    rest = abs(a - b) - 1
    within: np.ndarray = (rest < 0) | (rest**2 < 4 * np.minimum(a, b))
    return within
