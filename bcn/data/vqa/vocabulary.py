"""Words of questions as indices: 0 is padding, 1 a word that was not seen in training."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

PADDING, UNKNOWN = 0, 1
NUM_SPECIAL = 2
MARKS = "".join(chr(code) for code in range(0x300, 0x1F000) if unicodedata.category(chr(code)).startswith("M"))
"""accents, vowel signs and the like, which belong to the letter before them, and are not letters to `re`"""
WORD_PATTERN = rf"\w+(?:[-']\w+|(?![ -~])[{MARKS}]\w*)*|[,;]"  # ASCII is not looked up among the many marks
"""of a question in lower case and in the normal form NFC, where a letter with its marks is one character if possible"""


def tokenize(question: str) -> list[str]:
    """The words of a question in lower case; commas and semicolons count, the question mark does not.

    >>> tokenize("Is there a left-side ball; if so, what's its size?")
    ['is', 'there', 'a', 'left-side', 'ball', ';', 'if', 'so', ',', "what's", 'its', 'size']
    """
    return re.findall(WORD_PATTERN, unicodedata.normalize("NFC", question.lower()))


@dataclass(frozen=True)
class Vocabulary:
    words: tuple[str, ...]
    """word i has the index i + NUM_SPECIAL"""

    @classmethod
    def from_words(cls, words: Iterable[str]) -> "Vocabulary":
        """The distinct words, sorted."""
        return cls(tuple(sorted(set(words))))

    def __len__(self) -> int:
        """How many indices there are, padding and unknown included."""
        return len(self.words) + NUM_SPECIAL

    def encode(self, question: str) -> list[int]:
        """
        >>> Vocabulary.from_words(["red", "cube"]).encode("Red ball?")
        [3, 1]
        """
        return self.index(tokenize(question))

    def index(self, words: Iterable[str]) -> list[int]:
        """The indices of words."""
        index = _indices(self.words)
        return [index.get(word, UNKNOWN) for word in words]

    def decode(self, indices: Iterable[int]) -> list[str]:
        """The words again; padding is left out."""
        return ["?" if n == UNKNOWN else self.words[n - NUM_SPECIAL] for n in map(int, indices) if n != PADDING]


@lru_cache(maxsize=16)
def _indices(words: tuple[str, ...]) -> dict[str, int]:
    return {word: position + NUM_SPECIAL for position, word in enumerate(words)}
