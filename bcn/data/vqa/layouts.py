"""Two layouts of images with questions about them, read one question at a time.

- CLEVR's, and CoGenT's and ours: `images/<split>/*.png` and `questions/CLEVR_<split>_questions.json`.
- Anyone's own: images, and beside them `questions.jsonl` with a line for each question,
  {"image": "cats/1.jpg", "question": "Is it asleep?", "answer": "yes"}, and where wanted "split" and "kind".
"""

import hashlib
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from bcn.data.clevr_like.camera import HEIGHT, WIDTH
from bcn.data.clevr_like.program import kind_of
from bcn.data.clevr_like.scene import ATTRIBUTES, RELATIONS, VERSION
from bcn.data.vqa.vocabulary import tokens
from bcn.errors import BcnError

LINES = "questions.jsonl"
FORM = '{"image": "1.png", "question": "...", "answer": "..."}'
"""of a line"""
NOTHING = f"asks nothing: give it a line for each question, {FORM}"
NO_KIND = "other"
"""the kind of a question that says none, where others do"""
TAKEN = ("all", "localisation")
"""figures that stand beside those of the kinds, whose names no kind may have"""


class Asked(NamedTuple):
    image: Path
    """relative to the directory"""
    question: str
    answer: str | None
    """None in a test split whose answers are withheld"""
    kind: str | None
    number: int
    """`question_index`, or the number of the line"""


def list_splits(directory: Path) -> list[str]:
    """The splits of a directory, in the order of their names."""
    if (directory / LINES).exists():
        state = (directory / LINES).stat()
        return list(_own_splits(directory, state.st_size, state.st_mtime_ns))
    files = [path.name for path in (directory / "questions").glob("*") if path.is_file()]
    names = [re.fullmatch(r"CLEVR_(\w+)_questions\.json", file) for file in files]
    if found := sorted(name[1] for name in names if name):
        return found
    raise BcnError(
        f"{directory} holds neither {LINES} nor questions/CLEVR_<split>_questions.json: "
        "give the directory of a data set in one of these layouts"
    )


@cache
def _own_splits(directory: Path, size: int, modified: int) -> tuple[str, ...]:
    """The splits of one's own file, which is read again only when it changed."""
    if splits := {split for split, _ in _own(directory)}:
        return tuple(sorted(splits))
    raise BcnError(f"{directory / LINES} {NOTHING}")


def training_split(directory: Path) -> str | None:
    """The split that is trained on, which CoGenT calls `trainA`."""
    return next((split for split in ("train", "trainA") if split in list_splits(directory)), None)


def read_questions(directory: Path, split: str) -> Iterator[Asked]:
    """The questions of a split, in the order of the file."""
    if (directory / LINES).exists():
        return (asked for of, asked in _own(directory) if of == split)
    return _clevr(directory, split)


def question_file(directory: Path, split: str) -> Path:
    """The file that holds the questions of a split."""
    if split not in (splits := list_splits(directory)):
        raise BcnError(f"{directory} has no split {split!r}: it has {', '.join(splits)}")
    own = directory / LINES
    return own if own.exists() else directory / "questions" / f"CLEVR_{split}_questions.json"


def is_ours(path: Path) -> bool:
    """Whether a file of scenes or questions belongs to clevr-like-v1."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return VERSION in file.read(1000)


def _clevr(directory: Path, split: str) -> Iterator[Asked]:
    path = question_file(directory, split)
    for position, entry in enumerate(stream(path, "questions")):
        try:
            asked = _parse_entry(split, position, entry)
        except (ValueError, KeyError, TypeError, BcnError) as error:
            reason = f"{_reason(error)} (docs/reference/question-files.md shows the form)"
            raise BcnError(f"{path}, question {position}: {reason}") from error
        yield asked


def _parse_entry(split: str, position: int, entry: Any) -> Asked:
    if not isinstance(entry, dict):
        raise TypeError("it is not an object in braces")
    image = Path("images") / split / _text(entry, "image_filename")
    answer = None if entry.get("answer") is None else _text(entry, "answer")
    if not isinstance(number := entry.get("question_index", position), int):
        raise TypeError('"question_index" is not a whole number')
    return Asked(image, _question(entry), answer, _kind(entry), number)


def _kind(entry: dict[str, Any]) -> str | None:
    try:
        return kind_of(entry["program"]) if entry.get("program") else None
    except (LookupError, TypeError) as error:
        raise TypeError('"program" is not a list of functions') from error


def _own(directory: Path) -> Iterator[tuple[str, Asked]]:
    for number, line in own_lines(directory):
        yield parse_line(directory / LINES, number, line)


def own_lines(directory: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that are not empty, and their numbers from 1 on."""
    path = directory / LINES
    try:
        with open(path, "rb") as file:
            if b"\0" in file.peek():
                raise BcnError(f"{path} is written in UTF-16, or is no text: save it as UTF-8")
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, line
    except OSError as error:
        raise BcnError(f"cannot read {path}: {error.strerror}; give a file with a line for each question") from error


def parse_line(path: Path, number: int, line: bytes) -> tuple[str, Asked]:
    """The split and the question of a line."""
    try:
        entry = json.loads(line.decode("utf-8-sig"))
        if not isinstance(entry, dict):
            raise TypeError("it is not an object in braces")
        image, question = Path(_text(entry, "image")), _question(entry)
        answer, split, kind = (
            None if entry.get(key) in (None, "") else _text(entry, key) for key in ("answer", "split", "kind")
        )
        if image.is_absolute() or ".." in image.parts:
            raise ValueError(f'"image" is "{image}", and not a path within the folder')
        if split is not None and not re.fullmatch(r"[\w.-]{1,64}", split):
            raise ValueError(f'"split" is "{split}": its name may have up to 64 letters, digits and _ . -')
        if kind in TAKEN:
            raise ValueError(f'"kind" is "{kind}", which is the name of another figure: call it otherwise')
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BcnError(f"{path}, line {number}: {_reason(error)}; a line is {FORM}") from error
    return split or _split_of(image), Asked(image, question, answer, None if kind == NO_KIND else kind, number)


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it has too many brackets within brackets"
    return f"it has no {error}" if isinstance(error, KeyError) else str(error)


def _question(entry: dict[str, Any]) -> str:
    if not tokens(question := _text(entry, "question")):
        raise ValueError("the question has no words")
    return question


def _text(entry: dict[str, Any], key: str) -> str:
    """A text; numbers, and yes or no as JSON writes them, become one."""
    if not isinstance(value := entry[key], str | int | float):
        raise TypeError(f'"{key}" is neither a text nor a number')
    str(value).encode()  # half a character, such as "\\ud800", cannot be written anywhere
    return str(value)


def _split_of(image: Path) -> str:
    """Where no split is given, a tenth of the images is held out: which ones, their names decide."""
    return "val" if hashlib.sha256(image.as_posix().encode()).digest()[0] < 26 else "train"


def scene_file(directory: Path) -> Path:
    """The scenes of the training split."""
    path = directory / "scenes" / f"CLEVR_{training_split(directory)}_scenes.json"
    if path.is_file():
        return path
    raise BcnError(f"{path} is not there, to be taught by: get it, or train with auxiliary=none")


def centres(scene: dict[str, Any]) -> list[tuple[float, float]]:
    """x and y of the things of a scene, in units of the image's width and height, always below 1."""
    pixels = (thing["pixel_coords"] for thing in scene["objects"])
    return [(min(x / WIDTH, 1 - 1 / WIDTH), min(y / HEIGHT, 1 - 1 / HEIGHT)) for x, y, _ in pixels]


def read_scenes(path: Path) -> Iterator[dict[str, Any]]:
    """The scenes of a file, one at a time."""
    for position, scene in enumerate(stream(path, "scenes")):
        if not _is_scene(scene):
            raise BcnError(
                f"{path}, scene {position}: it does not have an image, objects and relationships as CLEVR's scenes do; "
                "get the file again"
            )
        yield scene


def _is_scene(scene: Any) -> bool:
    try:
        things, relations = scene["objects"], scene["relationships"]
        return (
            isinstance(scene["image_filename"], str)
            and isinstance(scene["image_index"], int)
            and all(thing[attribute] in values for thing in things for attribute, values in ATTRIBUTES.items())
            and all(len(thing["pixel_coords"]) == 3 for thing in things)
            and all(len(relations[name]) == len(things) for name in RELATIONS)
        )
    except (LookupError, TypeError):
        return False


def stream(path: Path, key: str, *, block: int = 1 << 20) -> Iterator[dict[str, Any]]:
    """The entries of the list `key` in a JSON file, one at a time: CLEVR's 700,000 questions need not be held.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
    ...     _ = file.write('{"info": {}, "questions": [{"answer": "yes"}, {"answer": "2"}]}')
    ...     file.flush()
    ...     [entry["answer"] for entry in stream(Path(file.name), "questions", block=8)]
    ['yes', '2']
    """
    try:
        yield from _stream(path, key, block)
    except UnicodeDecodeError as error:
        raise BcnError(f"{path} is not in UTF-8 ({error.reason}): get it again, or save it as UTF-8") from error
    except OSError as error:
        raise BcnError(f"cannot read {path}: {error.strerror}; give a file of CLEVR's {key}") from error


def _stream(path: Path, key: str, block: int) -> Iterator[dict[str, Any]]:
    decoder, begin, between = json.JSONDecoder(), re.compile(rf'"{key}"\s*:\s*\['), re.compile(r"[\s,]*")
    with open(path, encoding="utf-8") as file:
        text = ""
        while not (match := begin.search(text)):
            if not (read := file.read(block)):
                raise BcnError(f"{path} has no list {key!r}: is it a file of CLEVR's {key}?")
            text += read
        place = match.end()
        while True:
            place = between.match(text, place).end()  # type: ignore[union-attr]  # it matches nothing at least
            if text.startswith("]", place):
                return
            try:
                entry, place = decoder.raw_decode(text, place)
            except (ValueError, RecursionError) as error:  # the entry goes on in the next block
                if not (read := file.read(max(block, len(text) - place))):
                    raise BcnError(f"{path} ends or breaks within the list {key!r}: get it again") from error
                text, place = text[place:] + read, 0
                continue
            yield entry
