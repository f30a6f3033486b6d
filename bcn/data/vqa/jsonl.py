"""Anyone's own data: images, and beside them `questions.jsonl` with a line for each question.

{"image": "cats/1.jpg", "question": "Is it asleep?", "answer": "yes"}, and where wanted "split" and "kind".
"""

import hashlib
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from bcn.data.vqa.question import Question, parse_name, parse_path, parse_question, reason
from bcn.errors import BcnError

FILE = "questions.jsonl"
FORM = '{"image": "1.png", "question": "...", "answer": "..."}'
"""of a line"""
NO_QUESTIONS = f"has no questions: give it a line for each, {FORM}"
OTHER_KIND = "other"
"""the kind of a question that names none, where others do"""
RESERVED_KINDS = ("all", "localisation")
"""names of metrics that are reported beside those of the kinds"""


TENTH = 26
"""of the 256 values of a byte"""
TEST_FROM = 500
"""images from which on a test split is held out"""


def list_own_splits(directory: Path) -> list[str]:
    """The splits of the file, by name; it is read again only when it has changed."""
    state = (directory / FILE).stat()
    return list(_splits(directory, state.st_size, state.st_mtime_ns))


@cache
def _splits(directory: Path, size: int, modified: int) -> tuple[str, ...]:
    if splits := {split for split, _ in read_own(directory)}:
        return tuple(sorted(splits))
    raise BcnError(f"{directory / FILE} {NO_QUESTIONS}")


def read_own(directory: Path) -> Iterator[tuple[str, Question]]:
    """Every question with its split, in the order of the file."""
    tests = holds_out_test(directory)
    for number, line in read_lines(directory):
        yield parse_line(directory / FILE, number, line, tests=tests)


def holds_out_test(directory: Path) -> bool:
    """Whether a tenth of the images is held out as `test`: there are many, and no line names a split."""
    state = (directory / FILE).stat()
    return _holds_out_test(directory, state.st_size, state.st_mtime_ns)


@cache
def _holds_out_test(directory: Path, size: int, modified: int) -> bool:
    images = set()
    for _, line in read_lines(directory):
        try:
            entry = json.loads(line.decode("utf-8-sig"))
            if entry.get("split"):
                return False
            images.add(entry["image"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue  # whoever reads the line says what is wrong with it
    return len(images) >= TEST_FROM


def read_lines(directory: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that are not empty, and their numbers from 1 on."""
    path = directory / FILE
    try:
        with open(path, "rb") as file:
            if b"\0" in file.peek():
                raise BcnError(f"{path} is written in UTF-16, or is no text: save it as UTF-8")
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, line
    except OSError as error:
        raise BcnError(f"cannot read {path}: {error.strerror}; give a file with a line for each question") from error


def parse_line(path: Path, number: int, line: bytes, *, tests: bool = False) -> tuple[str, Question]:
    """The split and the question of a line.

    Args:
        tests: whether images are held out as `test` too, where a line names no split.
    """
    try:
        entry = json.loads(line.decode("utf-8-sig"))
        if not isinstance(entry, dict):
            raise TypeError("it is not an object in braces")
        image, text = parse_path(entry, "image"), parse_question(entry)
        answer, split, kind = (
            None if entry.get(key) in (None, "") else parse_name(entry, key) for key in ("answer", "split", "kind")
        )
        if split is not None and not re.fullmatch(r"[\w.-]{1,64}", split):
            raise ValueError(f'"split" is "{split}": its name may have up to 64 letters, digits and _ . -')
        if kind in RESERVED_KINDS:
            raise ValueError(f'"kind" is "{kind}", which is the name of another metric: use another name')
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BcnError(f"{path}, line {number}: {reason(error)}; a line is {FORM}") from error
    return split or _default_split(image, tests), Question(
        image, text, answer, None if kind == OTHER_KIND else kind, number
    )


def _default_split(image: Path, tests: bool) -> str:
    """Hold out a tenth of the images as `val`, and as `test` too if wanted, chosen by a hash of their names."""
    first = hashlib.sha256(image.as_posix().encode()).digest()[0]
    if first < TENTH:
        return "val"
    return "test" if tests and first < 2 * TENTH else "train"
