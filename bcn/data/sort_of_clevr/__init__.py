"""Sort-of-CLEVR: coloured squares and circles, and 36 questions about them.

docs/reference/sort-of-clevr.md specifies it.
"""

from bcn.data.sort_of_clevr.dataset import (
    FEWER,
    LEGACY,
    SPLITS,
    STREAM,
    V1,
    VERSIONS,
    SortOfClevr,
    SortOfClevrStream,
    make_sort_of_clevr,
)
from bcn.data.sort_of_clevr.drawing import RGB, draw
from bcn.data.sort_of_clevr.questions import ANSWERS, KINDS, answer_all, question_bits
from bcn.data.sort_of_clevr.scene import COLOURS, SHAPES, Scenes, repeats
from bcn.data.sort_of_clevr.sentences import from_sentence, to_sentence

__all__ = [
    "ANSWERS",
    "COLOURS",
    "FEWER",
    "KINDS",
    "LEGACY",
    "RGB",
    "SHAPES",
    "SPLITS",
    "STREAM",
    "V1",
    "VERSIONS",
    "Scenes",
    "SortOfClevr",
    "SortOfClevrStream",
    "answer_all",
    "draw",
    "from_sentence",
    "make_sort_of_clevr",
    "question_bits",
    "repeats",
    "to_sentence",
]
