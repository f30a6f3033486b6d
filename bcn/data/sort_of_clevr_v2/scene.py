"""A scene is data: 1 to 12 objects, each with a centre, a shape and a colour.

Colours are dealt out in a random order, six of them, and from the seventh object on once more in the same order. So
object k has the colour of object k - 6, and up to six objects have a colour each. docs/reference/sort-of-clevr-v2.md is
the specification.

N scenes, K objects at most, J words for the centre of an object, T attempts to place it.
"""

from typing import NamedTuple

import numpy as np

from bcn.data.random import integers_below, sample_without_replacement, splitmix64
from bcn.data.sort_of_clevr.scene import COLOURS, MIDDLE, RADIUS
from bcn.errors import BcnError

MOST = 2 * len(COLOURS)
"""objects in a scene"""
APART = 2 * RADIUS + 1
"""between two centres, in x or in y; one more where the colours are the same, so that a line of ground is between"""
SHAPE_WORD, NUMBER_WORD, COLOUR_WORD, CENTRE_WORD = 0, 1, 2, 2048
PER_WORD = 5
"""attempts that a word has bits for"""
OUTSIDE = -100
"""x of objects that are not there: far from all that are"""

Range = tuple[int, int]
"""the fewest and the most objects of a scene"""


class Scenes(NamedTuple):
    """Arrays of (N, K), one column per object; where no object is present, the other parts mean nothing."""

    x: np.ndarray
    """int16"""
    y: np.ndarray
    """int16"""
    shape: np.ndarray
    """uint8, index in SHAPES"""
    colour: np.ndarray
    """uint8, index in COLOURS"""
    present: np.ndarray
    """bool: the first objects of a row are, the others are not"""


def make_scenes(sample_N: np.ndarray, objects: Range) -> Scenes:
    """Scenes as functions of the samples' seeds alone.

    >>> make_scenes(np.arange(3, dtype=np.uint64), (2, 8)).present.sum(axis=1)
    array([5, 7, 7])
    """
    check_range(objects)
    fewest, most = objects
    number_N = fewest + integers_below(most - fewest + 1, splitmix64(sample_N, NUMBER_WORD)).astype(np.int64)
    present_NK = np.arange(most) < number_N[:, None]
    order_N6 = sample_without_replacement(splitmix64(sample_N[:, None], COLOUR_WORD + np.arange(6)), 6)
    colour_NK = order_N6[:, np.arange(most) % 6]
    shape_NK = (splitmix64(sample_N, SHAPE_WORD)[:, None] >> np.arange(most, dtype=np.uint64)).astype(np.uint8) & 1
    _let_two_be_named(shape_NK, number_N)
    return Scenes(*_place(sample_N, present_NK), shape_NK, colour_NK, present_NK)


def check_range(objects: Range) -> None:
    fewest, most = objects
    if not 1 <= fewest <= most <= MOST:
        raise BcnError(f"objects={fewest} to {most}: a scene of v2 has 1 to {MOST} objects")


def find_partner(scenes: Scenes) -> tuple[np.ndarray, np.ndarray]:
    """Whether an object shares its colour with another one, and whether that has the same shape; (N, K) both."""
    most = scenes.x.shape[1]
    shared_NK, alike_NK = np.zeros_like(scenes.present), np.zeros_like(scenes.present)
    for second in range(6, most):
        first, shared_N = second - 6, scenes.present[:, second]
        alike_N = shared_N & (scenes.shape[:, first] == scenes.shape[:, second])
        shared_NK[:, first] = shared_NK[:, second] = shared_N
        alike_NK[:, first] = alike_NK[:, second] = alike_N
    return shared_NK, alike_NK


def _let_two_be_named(shape_NK: np.ndarray, number_N: np.ndarray) -> None:
    """Where fewer than two objects could be told from all others, the last one gets the other shape."""
    for number in range(11, shape_NK.shape[1] + 1):
        pairs = number - 6
        alike_N = (shape_NK[:, :pairs] == shape_NK[:, 6:number]).all(axis=1)
        shape_NK[(number_N == number) & alike_N, number - 1] ^= 1


def _place(sample_N: np.ndarray, present_NK: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x and y (N, K): object after object goes anywhere where it is apart from all before it."""
    most = present_NK.shape[1]
    x_NK, y_NK = np.zeros((2, *present_NK.shape), dtype=np.int16)
    waiting, words = np.arange(len(sample_N)), 1 if most <= 6 else 2
    while len(waiting):
        x_KTN, y_KTN = _attempts(sample_N[waiting], most, words)
        there_KN, column = present_NK[waiting].T, np.arange(len(waiting))
        chosen: list[tuple[np.ndarray, np.ndarray]] = []
        placed_N = np.ones(len(waiting), dtype=bool)
        for k, (x_TN, y_TN) in enumerate(zip(x_KTN, y_KTN, strict=True)):
            free_TN = np.ones(x_TN.shape, dtype=bool)
            for other, (x_N, y_N) in enumerate(chosen):
                apart = APART + (k - other == 6)
                free_TN &= np.maximum(abs(x_TN - x_N), abs(y_TN - y_N)) >= apart
            attempt_N = free_TN.argmax(axis=0)
            placed_N &= free_TN[attempt_N, column] | ~there_KN[k]
            chosen.append((np.where(there_KN[k], x_TN[attempt_N, column], OUTSIDE), y_TN[attempt_N, column]))
        x_NK[waiting], y_NK[waiting] = (np.stack(part, axis=1) for part in zip(*chosen, strict=True))
        waiting, words = waiting[~placed_N], 4 * words
    return np.where(present_NK, x_NK, 0), np.where(present_NK, y_NK, 0)


def _attempts(sample_N: np.ndarray, most: int, words: int) -> tuple[np.ndarray, np.ndarray]:
    """x and y (K, T, N), int16: six bits each are one of the 64 numbers from 5 to 69 that are not the middle."""
    number_KJ = CENTRE_WORD + np.arange(most)[:, None] + MOST * np.arange(words)
    word_KJN = splitmix64(sample_N, number_KJ[:, :, None])
    bits_KJTN = np.stack([word_KJN >> np.uint64(12 * attempt) for attempt in range(PER_WORD)], axis=2)
    bits_KTN = bits_KJTN.astype(np.uint16).reshape(most, words * PER_WORD, -1)
    x_KTN, y_KTN = (bits_KTN & 63).astype(np.int16), (bits_KTN >> 6 & 63).astype(np.int16)
    return RADIUS + x_KTN + (x_KTN >= MIDDLE - RADIUS), RADIUS + y_KTN + (y_KTN >= MIDDLE - RADIUS)
