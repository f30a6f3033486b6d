"""The 36 questions about a scene and their answers: six kinds, each asked about each of the six colours.

Question n is of kind n // 6 about colour n % 6, so that the first 18 are non-relational and the last 18 relational. As
11 bits: six for the colour, two for non-relational or relational, three for the kind within these.

N scenes, K = 6 colours, Q questions of each.
"""

import numpy as np

from bcn.data.random import integers_below, sample_without_replacement, splitmix64
from bcn.data.sort_of_clevr.scene import MIDDLE, SIDE, Scenes, squared_distances

KINDS = ("shape", "left", "above", "closest", "furthest", "count")
ANSWERS = ("yes", "no", "square", "circle", "1", "2", "3", "4", "5", "6")
YES, SQUARE, ZERO = ANSWERS.index("yes"), ANSWERS.index("square"), ANSWERS.index("1") - 1

LEGACY_OWN_DISTANCE = 999
QUESTION_WORD = 8
PER_HALF = 10


def question_bits() -> np.ndarray:
    """(36, 11) float32: row n is question n.

    >>> question_bits()[6 * KINDS.index("above") + 1]
    array([0., 1., 0., 0., 0., 0., 1., 0., 0., 0., 1.], dtype=float32)
    """
    kind, colour = np.divmod(np.arange(36), 6)
    one_hot = np.eye(6), np.eye(2), np.eye(3)
    return np.concatenate([one_hot[0][colour], one_hot[1][kind // 3], one_hot[2][kind % 3]], axis=1).astype(np.float32)


def answer_all(scenes: Scenes, *, own_distance: int | None = None) -> np.ndarray:
    """(N, 36) the index in ANSWERS of every question; for a colour that is not present it means nothing.

    `own_distance` is the legacy fault: an object's squared distance to itself, so that it may be its own closest.
    """
    x_KN, y_KN, shape_KN, present_KN = (np.ascontiguousarray(part.T) for part in scenes)
    square_KKN = squared_distances(x_KN, y_KN).astype(np.int32)
    # colour and shape are packed into the low bits, so that one min or max gives them; ties go to the first colour
    colour_K1 = np.arange(6, dtype=np.int32)[:, None]
    rising_KKN = square_KKN << 4 | colour_K1 << 1 | shape_KN
    falling_KKN = square_KKN << 4 | (7 - colour_K1) << 1 | shape_KN
    nowhere = 4 * SIDE**2 << 4
    rising_KKN[:, ~present_KN] = nowhere
    falling_KKN[:, ~present_KN] = -1
    own = colour_K1[:, 0]
    rising_KKN[own, own] = nowhere if own_distance is None else own_distance << 4 | colour_K1 << 1 | shape_KN
    same_KKN = (shape_KN[:, None] == shape_KN) & present_KN
    answer_6KN = np.stack(
        [
            SQUARE + shape_KN,
            YES + (x_KN > MIDDLE),
            YES + (y_KN > MIDDLE),
            SQUARE + (rising_KKN.min(axis=1) & 1),
            SQUARE + (falling_KKN.max(axis=1) & 1),
            ZERO + same_KKN.sum(axis=1, dtype=np.uint8),
        ],
        dtype=np.uint8,
        casting="unsafe",
    )
    return np.ascontiguousarray(answer_6KN.reshape(36, -1).T)


def every_question(present_NK: np.ndarray, *, objects: int) -> np.ndarray:
    """(N, 6 * objects) the numbers of all questions about the objects of each scene, in rising order."""
    asked_N36 = np.tile(present_NK, (1, 6))
    return np.nonzero(asked_N36)[1].reshape(len(present_NK), 6 * objects).astype(np.uint8)


def sample_distinct(sample_N: np.ndarray, present_NK: np.ndarray, *, objects: int) -> np.ndarray:
    """v1: ten non-relational, then ten relational questions, distinct; all of them where there are fewer than ten."""
    asked_N18 = np.tile(present_NK, (1, 3))
    halves = []
    for half in (0, 18):
        key_N18 = splitmix64(sample_N[:, None], QUESTION_WORD + half + np.arange(18))
        key_N18[~asked_N18] = np.iinfo(np.uint64).max
        halves.append(half + sample_without_replacement(key_N18, min(PER_HALF, 3 * objects)))
    return np.concatenate(halves, axis=1)


def sample_with_replacement(sample_N: np.ndarray) -> np.ndarray:
    """Legacy: ten non-relational, then ten relational questions, each any of the 18."""
    number_NQ = integers_below(18, splitmix64(sample_N[:, None], QUESTION_WORD + np.arange(2 * PER_HALF)))
    number_NQ[:, PER_HALF:] += np.uint64(18)
    return number_NQ.astype(np.uint8)
