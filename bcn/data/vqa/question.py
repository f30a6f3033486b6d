"""A question about an image as a file holds it, and how its fields are read."""

import math
import re
from pathlib import Path
from typing import Any, NamedTuple

from bcn.data.dataset import MAX_NAME, check_name
from bcn.data.vqa.vocabulary import tokenize

MAX_TEXT = 1000
"""characters of a question, and of the path of an image"""
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""characters that steer a terminal, and are no spaces"""


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
    if not (words := tokenize(text := parse_text(entry, "question"))):
        raise ValueError("the question has no words")
    if (longest := max(map(len, words))) > MAX_NAME:
        raise ValueError(f"the question has a word of {longest:,} characters: accepted are up to {MAX_NAME}")
    return text


def parse_name(entry: dict[str, Any], key: str) -> str:
    """The name of an answer or of a kind."""
    text = parse_text(entry, key)
    try:
        return check_name(text)
    except ValueError as error:
        raise ValueError(f'"{key}" {error}') from error


def parse_text(entry: dict[str, Any], key: str) -> str:
    """A text; numbers and booleans become one."""
    if not isinstance(value := entry[key], str | int | float):
        raise TypeError(f'"{key}" is neither a text nor a number')
    text = str(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f'"{key}" is {text}, which is no number')
    text.encode()  # half a character, such as "\\ud800", cannot be written anywhere
    if len(text) > MAX_TEXT:
        raise ValueError(f'"{key}" has {len(text):,} characters: accepted are up to {MAX_TEXT:,}')
    if control := _CONTROL.search(text):
        raise ValueError(f'"{key}" has the control character {control[0]!a}')
    return text


def parse_path(entry: dict[str, Any], key: str) -> Path:
    """The path of a file within the folder of a data set."""
    path = Path(parse_text(entry, key))
    if path.is_absolute() or path.drive or ".." in path.parts or not path.name:
        raise ValueError(f'"{key}" is "{path}", and not a path within the folder')
    return path


def reason(error: Exception) -> str:
    """What is wrong with an entry, for an error message that begins with its position."""
    if isinstance(error, RecursionError):
        return "it has too many brackets within brackets"
    return f"it has no {error}" if isinstance(error, KeyError) else str(error)
