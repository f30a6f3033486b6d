"""A question as an English sentence and back."""

import re
from collections.abc import Sequence

import numpy as np
from torch import Tensor

from bcn.data.sort_of_clevr.questions import KINDS, question_bits
from bcn.data.sort_of_clevr.scene import COLOURS
from bcn.errors import BcnError

SENTENCES = {
    "shape": "What is the shape of the {} object?",
    "left": "Is the {} object on the left?",
    "above": "Is the {} object above the middle?",
    "closest": "What is the shape of the object closest to the {} one?",
    "furthest": "What is the shape of the object furthest from the {} one?",
    "count": "How many objects have the same shape as the {} one?",
}
SIGNS = {
    "left": {"left"},
    "above": {"above", "top", "upper", "up"},
    "closest": {"closest", "nearest"},
    "furthest": {"furthest", "farthest"},
    "count": {"many", "number", "count"},
}
"""words that give a kind away; where there is none of them, "shape" does"""
SMALL_WORDS = set(
    re.findall(r"\w+", "a an and are as at by does do has have in is it object one ones of on s thing the there to")
)
YES_NO_WORDS = set(re.findall(r"\w+", "centre center half image line middle part picture side"))
OTHER_WORDS = set(
    re.findall(r"\w+", "away from how me objects same shape shapes tell that their things what which with")
)
"""other words that are accepted; any further one, such as "not" or "right", could change the question"""


def to_sentence(question: Sequence[float] | np.ndarray | Tensor) -> str:
    """The sentence of a question of 11 bits.

    >>> to_sentence([0, 0, 1, 0, 0, 0, 0, 1, 0, 1, 0])
    'What is the shape of the object furthest from the blue one?'
    """
    bits = np.asarray(question, dtype=np.float32)
    match = (question_bits() == bits).all(axis=1) if bits.shape == (11,) else np.zeros(36, dtype=bool)
    if not match.any():
        raise BcnError(
            f"the question {bits.tolist()} has no meaning: give 11 numbers, of which exactly one is 1 "
            "in the first six (colour), in the next two (relational or not) and in the last three (kind), the others 0"
        )
    kind, colour = divmod(int(match.argmax()), 6)
    return SENTENCES[KINDS[kind]].format(COLOURS[colour])


def from_sentence(text: str) -> np.ndarray:
    """The 11 bits of a sentence; capitals and small words are free.

    >>> from_sentence("is the grey thing at the top")
    array([0., 0., 0., 0., 1., 0., 1., 0., 0., 0., 1.], dtype=float32)
    """
    said = ["gray" if word == "grey" else word for word in re.findall(r"[^\W_]+", text.lower())]
    colours = [word for word in said if word in COLOURS]
    kinds = [kind for kind, signs in SIGNS.items() if signs & set(said)] or ["shape"] * ("shape" in said)
    if len(colours) == len(kinds) == 1:
        signs, yes_no = SIGNS.get(kinds[0], set()), kinds[0] in ("left", "above")
        free = SMALL_WORDS | (YES_NO_WORDS if yes_no else OTHER_WORDS)
        # "is the red object left ..." asks about red, "is there an object left of the red one" is no question of ours
        in_order = not yes_no or signs.isdisjoint(said[: said.index(colours[0])])
        # and "how many objects are red" is none either
        of_shape = kinds[0] != "count" or not {"same", "shape", "shapes"}.isdisjoint(said)
        if in_order and of_shape and set(said) <= free | signs | set(colours):
            bits: np.ndarray = question_bits()[6 * KINDS.index(kinds[0]) + COLOURS.index(colours[0])]
            return bits
    forms = " ".join(sentence.format("red") for sentence in SENTENCES.values())
    raise BcnError(f"cannot understand {text!r}: ask about one colour ({', '.join(COLOURS)}) like this: {forms}")
