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

Ends = tuple[np.ndarray, np.ndarray]
"""x or y of two points; they broadcast against those that are compared with them"""


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
    inside_PKN, border_PKN = place_in_box(x_KN, y_KN, _ends(x_KN, first, second), _ends(y_KN, first, second))
    inside_PKN &= others_PKN
    return ZERO + inside_PKN.sum(axis=1, dtype=np.uint8), ~(border_PKN & others_PKN).any(axis=1)


def _line(
    x_KN: np.ndarray,
    y_KN: np.ndarray,
    square_KKN: np.ndarray,
    others_PKN: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Whether the segment between two centres goes through another object; one that it goes through is enough."""
    sides = square_KKN[first], square_KKN[second], square_KKN[first, second][:, None]
    ends_x, ends_y = _ends(x_KN, first, second), _ends(y_KN, first, second)
    on_PKN, near_PKN = place_by_segment(x_KN, y_KN, ends_x, ends_y, sides)
    on_PN, near_PN = (on_PKN & others_PKN).any(axis=1), (near_PKN & others_PKN).any(axis=1)
    return np.where(on_PN, YES, NO).astype(np.uint8), on_PN | ~near_PN


def _obtuse(
    square_KKN: np.ndarray, others_PKN: np.ndarray, first: np.ndarray, second: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """How many others make an obtuse triangle with two; no angle that decides it may be near to a right one."""
    sides = square_KKN[first], square_KKN[second], square_KKN[first, second][:, None]
    obtuse_PKN, acute_PKN = judge_triangle(*sides)
    count_PN = (obtuse_PKN & others_PKN).sum(axis=1, dtype=np.uint8)
    return ZERO + count_PN, (obtuse_PKN | acute_PKN | ~others_PKN).all(axis=1)


def _ends(of_KN: np.ndarray, first: np.ndarray, second: np.ndarray) -> Ends:
    return of_KN[first][:, None], of_KN[second][:, None]


def place_in_box(x: np.ndarray, y: np.ndarray, ends_x: Ends, ends_y: Ends) -> tuple[np.ndarray, np.ndarray]:
    """Which points are in the box between two ends, and which on its border."""
    side_x, side_y = ((at - a) * (at - b) for at, (a, b) in ((x, ends_x), (y, ends_y)))
    inside = (side_x < 0) & (side_y < 0)
    return inside, (side_x <= 0) & (side_y <= 0) & ~inside


def place_by_segment(
    x: np.ndarray, y: np.ndarray, ends_x: Ends, ends_y: Ends, sides: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Which points are on the segment between two ends, and which less than OFF from it.

    Args:
        sides: squared distances of the points from both ends, and of the ends from each other.
    """
    to_a, to_b, length = sides
    cross = (x - ends_x[0]) * (ends_y[1] - ends_y[0]) - (y - ends_y[0]) * (ends_x[1] - ends_x[0])
    beside = abs(to_a - to_b) < length  # the foot is between the two
    cross *= cross
    return beside & (cross <= ON**2 * length), beside & (cross < OFF**2 * length)


def judge_triangle(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether a triangle of these squared sides is clearly obtuse, and whether it is clearly acute.

    Twice the scalar product at a corner is the sum of the two that meet there less the third.
    """
    obtuse, acute = np.zeros((), dtype=bool), np.ones((), dtype=bool)
    for one, other, opposite in ((a, b, c), (a, c, b), (b, c, a)):
        meeting = one + other
        twice = meeting - opposite
        clear = twice * twice >= 8 * meeting
        obtuse, acute = obtuse | clear & (twice < 0), acute & clear & (twice > 0)
    return obtuse, acute
