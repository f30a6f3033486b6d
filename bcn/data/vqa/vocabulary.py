"""Words of questions as numbers: 0 is padding, 1 a word that was not seen in training."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

PADDING, UNKNOWN = 0, 1
SPECIAL = 2
MARKS = "".join(chr(code) for code in range(0x300, 0x1F000) if unicodedata.category(chr(code)).startswith("M"))
"""accents, vowel signs and the like, which go with the letter before them, and are not letters to `re`"""
WORD = rf"\w+(?:[-']\w+|(?![ -~])[{MARKS}]\w*)*|[,;]"  # ASCII is not looked up among the many marks
"""in a question in lower case, where a letter with its marks is one character as far as there is one (NFC)"""


def tokens(question: str) -> list[str]:
    """The words of a question in lower case; commas and semicolons count, the question mark does not.

    >>> tokens("Is there a left-side ball; if so, what's its size?")
    ['is', 'there', 'a', 'left-side', 'ball', ';', 'if', 'so', ',', "what's", 'its', 'size']
    """
    return re.findall(WORD, unicodedata.normalize("NFC", question.lower()))


@dataclass(frozen=True)
class Vocabulary:
    words: tuple[str, ...]
    """the word with number i + 2 at place i"""

    @classmethod
    def of(cls, words: Iterable[str]) -> "Vocabulary":
        return cls(tuple(sorted(set(words))))

    def __len__(self) -> int:
        """How many numbers there are, padding and unknown among them."""
        return len(self.words) + SPECIAL

    def encode(self, question: str) -> list[int]:
        """
        >>> Vocabulary.of(["red", "cube"]).encode("Red ball?")
        [3, 1]
        """
        number = {word: place + SPECIAL for place, word in enumerate(self.words)}
        return [number.get(word, UNKNOWN) for word in tokens(question)]

    def decode(self, numbers: Iterable[int]) -> list[str]:
        """The words again; padding is left out."""
        return ["?" if n == UNKNOWN else self.words[n - SPECIAL] for n in map(int, numbers) if n != PADDING]
