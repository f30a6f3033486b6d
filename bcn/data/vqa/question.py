"""A question about an image as a file holds it, and how its fields are read."""

from pathlib import Path
from typing import Any, NamedTuple

from bcn.data.vqa.vocabulary import tokenize


class Question(NamedTuple):
    image: Path
    """relative to the directory of the data set"""
    text: str
    answer: str | None
    """None in a test split whose answers are withheld"""
    kind: str | None
    number: int
    """`question_index`, or the number of the line"""


def parse_question(entry: dict[str, Any]) -> str:
    """The text of a question, which has at least one word."""
    if not tokenize(text := parse_text(entry, "question")):
        raise ValueError("the question has no words")
    return text


def parse_text(entry: dict[str, Any], key: str) -> str:
    """A text; numbers and booleans become one."""
    if not isinstance(value := entry[key], str | int | float):
        raise TypeError(f'"{key}" is neither a text nor a number')
    str(value).encode()  # half a character, such as "\\ud800", cannot be written anywhere
    return str(value)


def reason(error: Exception) -> str:
    """What is wrong with an entry, for an error message that begins with its position."""
    if isinstance(error, RecursionError):
        return "it has too many brackets within brackets"
    return f"it has no {error}" if isinstance(error, KeyError) else str(error)
