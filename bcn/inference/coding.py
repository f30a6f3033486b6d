"""How questions about scenes are vectors of bits, for each coding that a model may have been trained with.

A question is a kind and the name of an object, and for ternary kinds that of a second one. Names are numbered as in
sort-of-clevr-v2: n < 6 is colour n, 6 + n a square of colour n, 12 + n a circle of it; v1 has the first six.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import nn

from bcn.data import sort_of_clevr as v1
from bcn.data import sort_of_clevr_v2 as v2
from bcn.data.sort_of_clevr_v2.questions import NO_NAME, number_question, split_number


@dataclass(frozen=True, eq=False)
class QuestionCoding:
    data: str
    """the data set that has it"""
    fresh: str
    """the data set of its scenes that never repeat"""
    kinds: tuple[str, ...]
    bits: np.ndarray
    """(numbers, D) the vector of each question"""
    from_sentence: Callable[[str], np.ndarray]
    to_sentence: Callable[[np.ndarray], str]
    number: Callable[..., int]
    """of a question, from the number of its kind and one or two names"""
    _split: Callable[[int], tuple[int, ...]]

    def split(self, bits_D: np.ndarray) -> tuple[str, tuple[int, ...]]:
        """The kind and the names of a question.

        >>> CODINGS[1].split(v2.from_sentence("is any object on the line between red and the blue circle"))
        ('line', (0, 14))
        """
        kind, *names = self._split(int((self.bits == bits_D).all(axis=1).argmax()))
        return self.kinds[kind], tuple(name for name in names if name != NO_NAME)


CODINGS = (
    QuestionCoding(
        v1.V1,
        v1.STREAM,
        v1.KINDS,
        v1.question_bits(),
        v1.from_sentence,
        v1.to_sentence,
        number=lambda kind, name: 6 * kind + name,
        _split=lambda number: divmod(number, 6),
    ),
    QuestionCoding(
        v2.V2,
        v2.V2_STREAM,
        v2.KINDS,
        v2.question_bits(),
        v2.from_sentence,
        v2.to_sentence,
        number=lambda *parts: int(number_question(*parts)),
        _split=split_number,
    ),
)


def find_coding(model: nn.Module, description: dict[str, Any]) -> QuestionCoding | None:
    """The coding of a model's questions, by their kinds and how many bits they have; None for any other."""
    bits = getattr(model, "question_dim", None)
    for coding in CODINGS:
        if (coding.kinds, coding.bits.shape[1]) == (tuple(description["kinds"]), bits):
            return coding
    return None
