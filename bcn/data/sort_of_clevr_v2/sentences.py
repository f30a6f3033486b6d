"""A question of v2 as an English sentence and back."""

import re
from collections.abc import Sequence

import numpy as np
from torch import Tensor

from bcn.data.sort_of_clevr.scene import COLOURS, SHAPES
from bcn.data.sort_of_clevr.sentences import OTHER_WORDS, SMALL_WORDS, YES_NO_WORDS
from bcn.data.sort_of_clevr_v2.questions import (
    BITS,
    KINDS,
    NO_NAME,
    PADDING,
    number_question,
    question_bits,
    split_number,
)
from bcn.errors import BcnError

SENTENCES = {
    "shape": "What is the shape of the {object}?",
    "left": "Is the {object} on the left?",
    "above": "Is the {object} above the middle?",
    "closest": "What is the shape of the object closest to the {one}?",
    "furthest": "What is the shape of the object furthest from the {one}?",
    "count": "How many objects have the same shape as the {one}?",
    "between": "How many objects are in the box between the {one} and the {other}?",
    "line": "Is there an object on the line between the {one} and the {other}?",
    "obtuse": "How many objects form an obtuse triangle with the {one} and the {other}?",
}
SIGNS = {
    "left": {"left"},
    "above": {"above", "top", "upper", "up"},
    "closest": {"closest", "nearest"},
    "furthest": {"furthest", "farthest"},
    "count": {"same"},
    "between": {"box", "rectangle"},
    "line": {"line", "segment"},
    "obtuse": {"obtuse"},
}
"""words that give a kind away; where there is none of them, "shape" does"""
COUNTS = {"many", "number", "count"}
"""words that ask for a number"""
TERNARY_WORDS = set(
    re.findall(r"\w+", "another any between how form forms inside lie lies make makes objects other others straight")
) | set(re.findall(r"\w+", "that things triangle triangles which with within"))
_BITS = question_bits()[:PADDING]


def to_sentence(question: Sequence[float] | np.ndarray | Tensor) -> str:
    """The sentence of a question of 22 bits.

    >>> to_sentence(question_bits()[number_question(KINDS.index("line"), 0, 14)])
    'Is there an object on the line between the red one and the blue circle?'
    """
    bits = np.asarray(question, dtype=np.float32)
    match = np.flatnonzero((bits == _BITS).all(axis=1)).tolist() if bits.shape == (BITS,) else []
    kind, first, second = split_number(match[0]) if match else (0, 0, 0)
    if not match or (second == NO_NAME) is (kind >= 6) or first == second:
        raise BcnError(
            f"the question {bits.tolist()} has no meaning: give {BITS} numbers, 1 for the colour in the first six, for "
            "the shape in the next two where it is named, the same in the next eight for a second object where the "
            "question is ternary, in the next three for the arity and in the last three for the kind, the others 0"
        )
    return SENTENCES[KINDS[kind]].format(object=_name(first, "object"), one=_name(first), other=_name(second))


def from_sentence(text: str) -> np.ndarray:
    """The 22 bits of a sentence; capitals and small words are free.

    >>> to_sentence(from_sentence("how many things lie in the box between the grey circle and yellow"))
    'How many objects are in the box between the gray circle and the yellow one?'
    """
    plain = re.sub(r"\bgrey\b", "gray", text.lower()).replace("middle line", "middle")
    named = re.findall(rf"\b({'|'.join(COLOURS)})\b(?:\s+({'|'.join(SHAPES)})\b)?", plain)
    said = set(re.findall(r"[^\W_]+", re.sub(rf"\b({'|'.join(COLOURS)})\s+({'|'.join(SHAPES)})\b", r"\1", plain)))
    names = [COLOURS.index(colour) + 6 * (1 + SHAPES.index(shape) if shape else 0) for colour, shape in named]
    kinds = [kind for kind, signs in SIGNS.items() if signs & said] or ["shape"] * ("shape" in said)
    if len(kinds) == 1 and _suits(kinds[0], names, said, plain):
        bits: np.ndarray = _BITS[number_question(KINDS.index(kinds[0]), *names)]
        return bits
    forms = " ".join(_example(sentence) for sentence in SENTENCES.values())
    raise BcnError(
        f"cannot understand {text!r}: name one or two objects by colour ({', '.join(COLOURS)}), or by colour and shape "
        f"(red square, red circle), like this: {forms}"
    )


def _suits(kind: str, names: list[int], said: set[str], plain: str) -> bool:
    """Whether the words, besides those that give the kind away, leave no doubt about the question."""
    number = KINDS.index(kind)
    signs, asks_number = SIGNS.get(kind, set()), kind in ("count", "between", "obtuse")
    free = SMALL_WORDS | (TERNARY_WORDS if number >= 6 else YES_NO_WORDS if kind in ("left", "above") else OTHER_WORDS)
    free = free | signs | set(COLOURS) | (COUNTS if asks_number else set())
    if len(names) != 1 + (number >= 6) or len(set(names)) != len(names) or not said <= free:
        return False
    if kind in ("left", "above"):  # "is there an object left of the red one" is no question of ours
        first = min(match.start() for sign in signs for match in re.finditer(rf"\b{sign}\b", plain))
        return first > min(plain.index(colour) for colour in COLOURS if colour in said)
    if kind == "shape" and names[0] >= 6:  # the name says it
        return False
    return not asks_number or bool(COUNTS & said)


def _name(name: int, noun: str = "one") -> str:
    """The noun phrase of a name, without an article."""
    shape, colour = divmod(name, len(COLOURS))
    return f"{COLOURS[colour]} {SHAPES[shape - 1] if shape else noun}" if name != NO_NAME else ""


def _example(sentence: str) -> str:
    return sentence.format(object=_name(0, "object"), one=_name(0), other=_name(2))
