"""Sort-of-CLEVR: coloured squares and circles, and 36 questions about them.

docs/reference/sort-of-clevr.md specifies it.
"""

from bcn.data.sort_of_clevr.dataset import (
    FEWER_OBJECTS,
    LEGACY,
    STREAM,
    V1,
    VERSIONS,
    SortOfClevr,
    SortOfClevrStream,
    make_sort_of_clevr,
)
from bcn.data.sort_of_clevr.drawing import RGB, draw_scenes
from bcn.data.sort_of_clevr.generated import SPLITS
from bcn.data.sort_of_clevr.questions import ANSWERS, KINDS, answer_all, question_bits
from bcn.data.sort_of_clevr.scene import COLOURS, SHAPES, Scenes
from bcn.data.sort_of_clevr.sentences import from_sentence, to_sentence

__all__ = [
    "ANSWERS",
    "COLOURS",
    "FEWER_OBJECTS",
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
    "draw_scenes",
    "from_sentence",
    "make_sort_of_clevr",
    "question_bits",
    "to_sentence",
]
