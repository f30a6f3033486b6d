"""The two layouts of images with questions about them: CLEVR's (clevr.py), and anyone's own (jsonl.py)."""

from collections.abc import Iterator
from pathlib import Path

from bcn.data.vqa import jsonl
from bcn.data.vqa.clevr import CLEVR, clevr_questions_file, find_clevr_like, list_clevr_splits, read_clevr
from bcn.data.vqa.question import Question
from bcn.errors import BcnError


def is_own(directory: Path) -> bool:
    """Whether a directory has one's own layout."""
    return (directory / jsonl.FILE).exists()


def list_splits(directory: Path) -> list[str]:
    """The splits of a directory, by name."""
    if is_own(directory):
        return jsonl.list_own_splits(directory)
    if splits := list_clevr_splits(directory):
        return splits
    raise BcnError(
        f"{directory} holds neither {jsonl.FILE} nor questions/CLEVR_<split>_questions.json: "
        "give the directory of a data set in one of these layouts"
    )


def training_split(directory: Path) -> str | None:
    """The split that is trained on, which CoGenT calls `trainA`."""
    return next((split for split in ("train", "trainA") if split in list_splits(directory)), None)


def read_questions(directory: Path, split: str) -> Iterator[Question]:
    """The questions of a split, in the order of the file."""
    if is_own(directory):
        return (question for of, question in jsonl.read_own(directory) if of == split)
    return read_clevr(directory, split)


def questions_file(directory: Path, split: str) -> Path:
    """The file that holds the questions of a split."""
    if split not in (splits := list_splits(directory)):
        raise BcnError(f"{directory} has no split {split!r}: it has {', '.join(splits)}")
    return directory / jsonl.FILE if is_own(directory) else clevr_questions_file(directory, split)


def name_of(directory: Path) -> str:
    """The data set that a directory holds; of one's own, the directory's name."""
    if is_own(directory):
        return directory.resolve().name
    return find_clevr_like(questions_file(directory, list_splits(directory)[0])) or CLEVR
