"""The answers to all questions about a scene, and whether they are clear.

A question is asked where its answer is the same however the centres are moved against each other by half a pixel in x
and in y. Each kind has a rule in integers for that; docs/reference/sort-of-clevr-v2.md derives them.

N scenes, K objects, P = K (K - 1) / 2 pairs of them; a place is the object or the pair that a question is about.
"""

from typing import NamedTuple

import numpy as np

from bcn.data.sort_of_clevr.scene import MIDDLE
from bcn.data.sort_of_clevr_v2.questions import NO, NO_NAME, SQUARE, YES, ZERO, name_objects
from bcn.data.sort_of_clevr_v2.scene import Scenes

ON, OFF = 4, 8
"""pixels from a segment, up to which an object is on it, and from which it is not"""
FAR = np.int32(1 << 14)
"""more than any squared distance"""


class Answers(NamedTuple):
    """What can be asked about some objects or pairs of N scenes."""

    answer: np.ndarray
    """(3 kinds, places, N) uint8"""
    clear: np.ndarray
    """(3 kinds, places, N) bool: whether it may be asked"""


def pair_places(most: int) -> tuple[np.ndarray, np.ndarray]:
    """The first and the second object of each pair; that of i < j has place j (j - 1) / 2 + i."""
    second, first = np.nonzero(np.tri(most, k=-1, dtype=bool))
    return first, second


def answer_scenes(scenes: Scenes) -> tuple[Answers, Answers, Answers]:
    """The unary, binary and ternary questions: about each object, each object, and each pair."""
    x_KN, y_KN, shape_KN, _, present_KN = (np.ascontiguousarray(part.T) for part in scenes)
    x_KN, y_KN, name_KN = x_KN.astype(np.int32), y_KN.astype(np.int32), name_objects(scenes).T
    named_KN = name_KN != NO_NAME
    square_KKN = (x_KN[:, None] - x_KN) ** 2 + (y_KN[:, None] - y_KN) ** 2
    first, second = pair_places(len(x_KN))
    others_PKN = _others(present_KN, first, second)
    between = _between(x_KN, y_KN, others_PKN, first, second)
    line = _line(x_KN, y_KN, square_KKN, others_PKN, first, second)
    obtuse = _obtuse(square_KKN, others_PKN, first, second)
    ternary = Answers(*(np.stack(part) for part in zip(between, line, obtuse, strict=True)))
    ternary.clear[:] &= named_KN[first] & named_KN[second]
    return _unary(x_KN, y_KN, shape_KN, name_KN), _binary(square_KKN, shape_KN, present_KN, named_KN), ternary


def _unary(x_KN: np.ndarray, y_KN: np.ndarray, shape_KN: np.ndarray, name_KN: np.ndarray) -> Answers:
    """Shape, left, above; a name that says the shape is not asked about it."""
    answer = np.stack([SQUARE + shape_KN, YES + (x_KN > MIDDLE), YES + (y_KN > MIDDLE)]).astype(np.uint8)
    return Answers(answer, np.stack([name_KN < 6, name_KN != NO_NAME, name_KN != NO_NAME]))


def _binary(square_KKN: np.ndarray, shape_KN: np.ndarray, present_KN: np.ndarray, named_KN: np.ndarray) -> Answers:
    """Closest, furthest, count."""
    own_K = np.arange(len(shape_KN))
    nearest, furthest, some = [], [], []
    for shape in (0, 1):
        other_KKN = np.broadcast_to(present_KN & (shape_KN == shape), square_KKN.shape).copy()
        other_KKN[own_K, own_K] = False
        nearest.append(np.where(other_KKN, square_KKN, FAR).min(axis=1))
        furthest.append(np.where(other_KKN, square_KKN, -1).max(axis=1))
        some.append(other_KKN.any(axis=1))
    both, either = some[0] & some[1], some[0] | some[1]
    same_KKN = (shape_KN[:, None] == shape_KN) & present_KN
    answer = [
        SQUARE + (nearest[1] < nearest[0]),
        SQUARE + (furthest[1] > furthest[0]),
        ZERO + same_KKN.sum(axis=1, dtype=np.uint8),
    ]
    clear = [either & ~(both & _within_two_pixels(*pair)) for pair in (nearest, furthest)]
    return Answers(np.stack(answer).astype(np.uint8), np.stack([*clear, named_KN]) & named_KN)


def _within_two_pixels(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """|sqrt(a) - sqrt(b)| < 2, in integers: with a <= b it is b - a - 4 < 4 sqrt(a)."""
    rest = abs(a - b) - 4
    within: np.ndarray = (rest < 0) | (rest**2 < 16 * np.minimum(a, b))
    return within


def _others(present_KN: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    others_PKN = np.broadcast_to(present_KN, (len(first), *present_KN.shape)).copy()
    place = np.arange(len(first))
    others_PKN[place, first] = others_PKN[place, second] = False
    return others_PKN


def _between(
    x_KN: np.ndarray, y_KN: np.ndarray, others_PKN: np.ndarray, first: np.ndarray, second: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """How many others are in the box that two centres span; none may be on its border."""
    sides_PKN = [(of_KN - of_KN[first][:, None]) * (of_KN - of_KN[second][:, None]) for of_KN in (x_KN, y_KN)]
    inside_PKN = (sides_PKN[0] < 0) & (sides_PKN[1] < 0) & others_PKN
    border_PKN = (sides_PKN[0] <= 0) & (sides_PKN[1] <= 0) & others_PKN & ~inside_PKN
    return ZERO + inside_PKN.sum(axis=1, dtype=np.uint8), ~border_PKN.any(axis=1)


def _line(
    x_KN: np.ndarray,
    y_KN: np.ndarray,
    square_KKN: np.ndarray,
    others_PKN: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Whether the segment between two centres goes through another object; one that it goes through is enough."""
    x_PN, y_PN = x_KN[second] - x_KN[first], y_KN[second] - y_KN[first]
    cross_PKN = (x_KN - x_KN[first][:, None]) * y_PN[:, None] - (y_KN - y_KN[first][:, None]) * x_PN[:, None]
    length_P1N = square_KKN[first, second][:, None]
    beside_PKN = abs(square_KKN[first] - square_KKN[second]) < length_P1N  # the foot is between the two
    beside_PKN &= others_PKN
    cross_PKN *= cross_PKN
    on_PN = (beside_PKN & (cross_PKN <= ON**2 * length_P1N)).any(axis=1)
    near_PN = (beside_PKN & (cross_PKN < OFF**2 * length_P1N)).any(axis=1)
    return np.where(on_PN, YES, NO).astype(np.uint8), on_PN | ~near_PN


def _obtuse(
    square_KKN: np.ndarray, others_PKN: np.ndarray, first: np.ndarray, second: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """How many others make an obtuse triangle with two; no angle that decides it may be near to a right one.

    With squared sides, twice the scalar product at a corner is the sum of the two that meet there less the third.
    """
    a_PKN, b_PKN, c_P1N = square_KKN[first], square_KKN[second], square_KKN[first, second][:, None]
    obtuse_PKN, acute_PKN = np.zeros_like(others_PKN), np.ones_like(others_PKN)
    for one, other, opposite in ((a_PKN, b_PKN, c_P1N), (a_PKN, c_P1N, b_PKN), (b_PKN, c_P1N, a_PKN)):
        meeting = one + other
        twice = meeting - opposite
        clear = twice * twice >= 8 * meeting
        obtuse_PKN |= clear & (twice < 0)
        acute_PKN &= clear & (twice > 0)
    count_PN = (obtuse_PKN & others_PKN).sum(axis=1, dtype=np.uint8)
    return ZERO + count_PN, (obtuse_PKN | acute_PKN | ~others_PKN).all(axis=1)
