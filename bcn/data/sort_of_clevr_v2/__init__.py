"""Sort-of-CLEVR v2: 1 to 12 coloured squares and circles, and unary, binary and ternary questions about them.

docs/reference/sort-of-clevr-v2.md specifies it.
"""

from bcn.data.sort_of_clevr_v2.dataset import SortOfClevrV2, SortOfClevrV2Stream
from bcn.data.sort_of_clevr_v2.drawing import draw_scenes
from bcn.data.sort_of_clevr_v2.questions import ANSWERS, BITS, KINDS, question_bits
from bcn.data.sort_of_clevr_v2.scene import Scenes, make_scenes
from bcn.data.sort_of_clevr_v2.sentences import from_sentence, to_sentence
from bcn.data.sort_of_clevr_v2.versions import (
    BY_CORRUPTION,
    BY_OBJECTS,
    OBJECTS,
    V2,
    V2_STREAM,
    V2_VARIED,
    make_sort_of_clevr_v2,
)

__all__ = [
    "ANSWERS",
    "BITS",
    "BY_CORRUPTION",
    "BY_OBJECTS",
    "KINDS",
    "OBJECTS",
    "V2",
    "V2_STREAM",
    "V2_VARIED",
    "Scenes",
    "SortOfClevrV2",
    "SortOfClevrV2Stream",
    "draw_scenes",
    "from_sentence",
    "make_scenes",
    "make_sort_of_clevr_v2",
    "question_bits",
    "to_sentence",
]
