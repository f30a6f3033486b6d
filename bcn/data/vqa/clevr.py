"""CLEVR's format (Johnson et al., 2017), also CoGenT's and clevr-like's: its words, its answers, its question files.

A directory has `images/<split>/*.png` and `questions/CLEVR_<split>_questions.json`. A question may have a program, a
list of nodes {"function": "filter_color", "inputs": [0], "value_inputs": ["red"]}, whose last function is its kind.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bcn.data.vqa.json_stream import stream_list
from bcn.data.vqa.question import Question, parse_name, parse_path, parse_question, reason
from bcn.errors import BcnError, did_you_mean

CLEVR, CLEVR_LIKE, CLEVR_LIKE_V2 = "clevr-v1.0", "clevr-like-v1", "clevr-like-v2"
CLEVR_CUSTOM = "clevr-like-custom"
"""scenes of other shapes, colors or numbers of objects than CLEVR's"""
ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "size": ("large", "small"),
    "color": ("gray", "red", "blue", "green", "brown", "purple", "cyan", "yellow"),
    "material": ("rubber", "metal"),
    "shape": ("cube", "sphere", "cylinder"),
}
ANSWERS = ("yes", "no", *map(str, range(11)), *(value for values in ATTRIBUTES.values() for value in values))
"""all 28"""
FAMILIES: dict[str, tuple[str, ...]] = {
    "count": ("count",),
    "exist": ("exist",),
    "compare_numbers": ("equal_integer", "less_than", "greater_than"),
    "query_attribute": tuple(f"query_{attribute}" for attribute in ATTRIBUTES),
    "compare_attribute": tuple(f"equal_{attribute}" for attribute in ATTRIBUTES),
}
"""the five families of table 4, and the 13 kinds of question in them"""
KINDS = tuple(kind for kinds in FAMILIES.values() for kind in kinds)

Node = dict[str, Any]
Program = list[Node]


def kind_of(program: Program) -> str:
    """The kind of question that a program asks.

    >>> kind_of([{"function": "scene", "inputs": []}, {"function": "count", "inputs": [0]}])
    'count'
    """
    kind = function_of(program[-1])
    if kind not in KINDS:
        raise did_you_mean("kind of question", kind, KINDS)
    return kind


def function_of(node: Node) -> str:
    """The name of a node's function: CLEVR's published files say `function`, its generator says `type`."""
    return str(node["function"] if "function" in node else node["type"])


def list_clevr_splits(directory: Path) -> list[str]:
    """The splits that have a file of questions, by name."""
    files = [path.name for path in (directory / "questions").glob("*") if path.is_file()]
    names = [re.fullmatch(r"CLEVR_(\w+)_questions\.json", file) for file in files]
    return sorted(name[1] for name in names if name)


def clevr_questions_file(directory: Path, split: str) -> Path:
    return directory / "questions" / f"CLEVR_{split}_questions.json"


def find_clevr_like(path: Path) -> str | None:
    """The version of clevr-like that a file of scenes or questions belongs to, which its first lines say."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            start = file.read(1000)
            return next((name for name in (CLEVR_CUSTOM, CLEVR_LIKE, CLEVR_LIKE_V2) if name in start), None)
    except OSError as error:
        raise BcnError(f"cannot read {path}: {error.strerror}; give a file of scenes or questions") from error


def read_clevr(directory: Path, split: str) -> Iterator[Question]:
    """The questions of a split, in the order of the file."""
    path = clevr_questions_file(directory, split)
    for position, entry in enumerate(stream_list(path, "questions")):
        try:
            question = _parse_entry(split, position, entry)
        except (ValueError, KeyError, TypeError, BcnError) as error:
            form = f"{reason(error)} (docs/reference/question-files.md shows the form)"
            raise BcnError(f"{path}, question {position}: {form}") from error
        yield question


def _parse_entry(split: str, position: int, entry: dict[str, Any]) -> Question:
    image = Path("images") / split / parse_path(entry, "image_filename")
    answer = None if entry.get("answer") is None else parse_name(entry, "answer")
    if not isinstance(number := entry.get("question_index", position), int):
        raise TypeError('"question_index" is not a whole number')
    if not 0 <= number < 1 << 63:
        raise ValueError(f'"question_index" is {number}: accepted are 0 to {(1 << 63) - 1}')
    return Question(image, parse_question(entry), answer, _parse_kind(entry), number)


def _parse_kind(entry: dict[str, Any]) -> str | None:
    try:
        return kind_of(entry["program"]) if entry.get("program") else None
    except (LookupError, TypeError) as error:
        raise TypeError('"program" is not a list of functions') from error
