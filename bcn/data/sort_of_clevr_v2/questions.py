"""Questions: nine kinds, three of them unary, three binary and three ternary, about one or two named objects.

An object's name is the shortest that no other object has: "red", or "red square" where there are two red ones of
different shapes. Names are numbered: n < 6 is colour n, 6 + c a square of colour c, 12 + c a circle of colour c. A
question is a kind, a name, and for ternary questions a second name. As 22 bits: six for the colour and two for the
shape of the first object, the same for the second, three for the arity, three for the kind within it.

N scenes, K objects, D = 22 bits.
"""

import numpy as np

from bcn.data.sort_of_clevr.scene import COLOURS
from bcn.data.sort_of_clevr_v2.scene import MOST, Scenes, find_partner

KINDS = ("shape", "left", "above", "closest", "furthest", "count", "between", "line", "obtuse")
GROUPS = {"unary": slice(0, 3), "binary": slice(3, 6), "ternary": slice(6, 9)}
ANSWERS = ("yes", "no", "square", "circle", *(str(number) for number in range(MOST + 1)))
YES, NO, SQUARE, ZERO = (ANSWERS.index(answer) for answer in ("yes", "no", "square", "0"))

NAMES = 18
NO_NAME = 18
"""in place of the second name of unary and binary questions, and of an object that cannot be named"""
QUESTIONS = len(KINDS) * NAMES * (NAMES + 1)
PADDING = QUESTIONS
"""the number of no question"""
FIRST, SECOND, ARITY, SUBTYPE, BITS = 0, 8, 16, 19, 22
"""where the parts of a question begin, and how many bits it has"""


def name_objects(scenes: Scenes) -> np.ndarray:
    """(N, K) the name of each object, NO_NAME where another one looks like it, or where there is none."""
    shared_NK, alike_NK = find_partner(scenes)
    name_NK = np.where(shared_NK, scenes.colour + 6 * (1 + scenes.shape), scenes.colour)
    return np.where(alike_NK | ~scenes.present, NO_NAME, name_NK).astype(np.uint8)


def number_question(
    kind: int | np.ndarray, first: int | np.ndarray, second: int | np.ndarray = NO_NAME
) -> int | np.ndarray:
    """The number of a question, from its kind and names."""
    return (kind * NAMES + first) * (NAMES + 1) + second


def split_number(number: int) -> tuple[int, int, int]:
    """Kind, first and second name.

    >>> split_number(number_question(7, 3, 12))
    (7, 3, 12)
    """
    rest, second = divmod(number, NAMES + 1)
    kind, first = divmod(rest, NAMES)
    return kind, first, second


def question_bits() -> np.ndarray:
    """(QUESTIONS + 1, 22) float32: row n is question n, the last row the padding.

    >>> question_bits()[number_question(KINDS.index("line"), 0, 13)].astype(int)
    array([1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 1, 0])
    """
    name_D = np.zeros((NAMES + 1, 8), dtype=np.float32)
    name_D[:NAMES, :6] = np.tile(np.eye(len(COLOURS)), (3, 1))
    name_D[6:12, 6] = name_D[12:18, 7] = 1
    kind, first, second = np.unravel_index(np.arange(QUESTIONS), (len(KINDS), NAMES, NAMES + 1))
    one_hot_3 = np.eye(3, dtype=np.float32)
    bits = np.concatenate([name_D[first], name_D[second], one_hot_3[kind // 3], one_hot_3[kind % 3]], axis=1)
    return np.pad(bits, ((0, 1), (0, 0)))


def kinds_of_numbers() -> np.ndarray:
    """(QUESTIONS + 1,) the kind of each question; padding has the first, and no answer."""
    return np.append(np.arange(QUESTIONS) // (NAMES * (NAMES + 1)), 0)
