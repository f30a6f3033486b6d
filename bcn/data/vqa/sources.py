"""The data sets of questions in words that have a name: CLEVR, clevr-like, and a directory of one's own.

The answers of CLEVR's own test split are not public. So `test` of "clevr-v1.0" is its split val, as everywhere in the
literature, and `val`, by which an epoch may be chosen, the last 1,000 images of its split train, which are not trained
on. In a directory of CoGenT's, the same holds of its condition A, and valB is opened by its own name.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from bcn.data.dataset import IGNORE_INDEX
from bcn.data.vqa.clevr import CLEVR, CLEVR_CUSTOM, list_clevr_splits
from bcn.data.vqa.dataset import QuestionDataset
from bcn.data.vqa.layouts import is_own, list_splits, name_of
from bcn.data.vqa.load import open_questions
from bcn.data.vqa.vocabulary import Vocabulary
from bcn.errors import BcnError
from bcn.io import data_root

SPLITS = ("train", "val", "test")
HELD_OUT = 1000
OWN = "own"
OWN_ZOOM = 0.25
"""of augmentation: images of one's own are few"""

OpenSplit = Callable[[str], QuestionDataset]


@dataclass(frozen=True)
class Source:
    about: str
    folder: str
    """in the data directory, which may also be this folder itself"""
    remedy: str
    """what to do where it is missing"""
    size: int = 128
    """width and height of the images"""
    train_images: int = 0
    """images that the results are trained on; 0 of one's own"""


_UNPACK = "not here: unpack CLEVR_v1.0.zip from https://cs.stanford.edu/people/jcjohns/clevr into BCN_DATA"
_RENDER = "not made yet: `bcn clevr make $BCN_DATA/{}`, with --split train, val and test"
SOURCES = {
    "clevr-v1.0": Source("CLEVR as published, at 128x128", "CLEVR_v1.0", _UNPACK, train_images=69_000),
    "clevr-v1.0-224": Source("the same at 224x224", "CLEVR_v1.0", _UNPACK, 224, train_images=69_000),
    "clevr-like-v1": Source(
        "scenes and questions like CLEVR's, 128x128",
        "clevr-like-v1",
        _RENDER.format("clevr-like-v1"),
        train_images=20_000,
    ),
    "clevr-like-v1-224": Source(
        "the same at 224x224",
        "clevr-like-v1-224",
        _RENDER.format("clevr-like-v1-224 --size 224"),
        224,
        train_images=20_000,
    ),
    "clevr-like-v2": Source(
        "the same scenes with questions in CLEVR's words, 128x128",
        "clevr-like-v2",
        _RENDER.format("clevr-like-v2 --grammar clevr-like-v2"),
        train_images=70_000,
    ),
    "clevr-like-v2-224": Source(
        "the same at 224x224",
        "clevr-like-v2-224",
        _RENDER.format("clevr-like-v2-224 --grammar clevr-like-v2 --size 224"),
        224,
        train_images=70_000,
    ),
    CLEVR_CUSTOM: Source(
        "scenes of other shapes, colors or numbers of objects",
        "clevr-like-custom",
        _RENDER.format("clevr-like-custom --shapes ... --colors ... --objects ..."),
    ),
    OWN: Source(
        "a directory of your own, with questions.jsonl", ".", "give the directory that has questions.jsonl with --data"
    ),
}


def find_held(directory: Path | None, size: int) -> str | None:
    """The name of the data set that a directory itself holds, for images of this size; None if it holds none.

    >>> find_held(Path("an-empty-directory"), 128) is None
    True
    """
    if directory is None or not (is_own(directory) or list_clevr_splits(directory)):
        return None
    if is_own(directory):
        return OWN
    name = name_of(directory)
    if name == CLEVR_CUSTOM:
        return name
    return next((each for each in (name, f"{name}-224") if SOURCES[each].size == size), name)


def published_split(name: str, split: str) -> tuple[str, str]:
    """The split to open for one that a user names, and the name that CLEVR has published it by.

    >>> published_split("clevr-v1.0", "val"), published_split("clevr-v1.0", "held-out")
    (('test', 'val'), ('val', 'held-out'))
    """
    if not name.startswith(CLEVR):
        return split, split
    opened = {"val": "test", "held-out": "val"}.get(split, split)
    return opened, "val" if opened == "test" else split


def find_source(name: str, data: str | Path | None = None) -> list[Path]:
    """The directory of a data set, if it is there: in the data directory, or the data directory itself."""
    root = data_root(data)
    for directory in (root / SOURCES[name].folder, root):
        if is_own(directory) if name == OWN else (directory / "questions").is_dir():
            return [directory]
    return []


def require_source(name: str, data: str | Path | None = None) -> list[Path]:
    """`find_source`, or an error that says what to do: none of these data sets is downloaded."""
    if directories := find_source(name, data):
        return directories
    raise BcnError(f"{name} is not in {data_root(data)}: {SOURCES[name].remedy}")


def open_source(
    name: str,
    split: str,
    *,
    data: str | Path | None = None,
    images: int | None = None,
    size: int | None = None,
    words: Sequence[str] | None = None,
    answers: Sequence[str] | None = None,
) -> QuestionDataset:
    """Open a split of a data set.

    Args:
        data: the directory of the data set, or the one that holds it (default: BCN_DATA).
        images: take the first `images` only.
        size: width and height of the images of one's own and of custom data sets; the others have theirs.
        words: the vocabulary of a trained model (default: that of the training split).
        answers: the answers of a trained model (default: those of the training split).
    """
    directory = require_source(name, data)[0]
    splits = list_splits(directory)
    if name != OWN and (held := name_of(directory)) != name.removesuffix("-224"):
        raise BcnError(f"{directory} holds {held}, not {name}: give another directory with --data or BCN_DATA")
    if split not in {*SPLITS, *splits}:
        raise BcnError(f"{name} has no split {split!r}: it has {', '.join(dict.fromkeys([*SPLITS, *splits]))}")
    size = size if size and name in (OWN, CLEVR_CUSTOM) else SOURCES[name].size
    open_split = partial(
        open_questions,
        directory,
        size=size,
        vocabulary=None if words is None else Vocabulary(tuple(words)),
        answers=answers,
    )
    if name.startswith("clevr-v1.0") and split in SPLITS:
        dataset = _open_clevr(split, splits, open_split)
    elif name == OWN:
        dataset = replace(_open_own(split, splits, open_split, directory), zoom=OWN_ZOOM)
    elif split in splits:
        dataset = open_split(split)
    elif name == CLEVR_CUSTOM:
        raise BcnError(f"{directory} has no split {split!r}: it has {', '.join(splits)}; make it with bcn clevr make")
    else:
        grammar = f" --grammar {name.removesuffix('-224')}"
        remedy = f"`bcn clevr make {directory} --split {split} --size {size}{grammar}` makes it"
        raise BcnError(f"{directory} has no split {split!r}: it has {', '.join(splits)}; {remedy}")
    return _first_images(replace(dataset, name=name), images)


def _open_clevr(split: str, splits: Sequence[str], open_split: OpenSplit) -> QuestionDataset:
    """`test` from the published val; `train` and `val` from the published train."""
    condition = "A" if "trainA" in splits and "train" not in splits else ""  # CoGenT's
    if split == "test":
        return replace(open_split("val" + condition), split=split)
    dataset = open_split("train" + condition)
    first_held_out = max(1, len(dataset.image) - HELD_OUT)
    held_out = dataset.rows[:, 0] >= first_held_out
    return replace(dataset, split=split, rows=dataset.rows[held_out if split == "val" else ~held_out])


def _open_own(split: str, splits: Sequence[str], open_split: OpenSplit, directory: Path) -> QuestionDataset:
    """Open `val` instead of a `test` that is missing or has no answers; the data set's `split` says so."""
    stored = "val" if split == "test" and "test" not in splits else split
    if stored not in splits:
        raise BcnError(
            f"{directory} has no split {stored!r}: it has {', '.join(splits)}; "
            f'give some of its lines "split": "{stored}"'
        )
    dataset = open_split(stored)
    if stored == "test" and "val" in splits and (dataset.answer == IGNORE_INDEX).all():
        return open_split("val")
    return dataset


def _first_images(dataset: QuestionDataset, count: int | None) -> QuestionDataset:
    images = np.unique(dataset.rows[:, 0])
    if count is None:
        return dataset
    if count > len(images):
        raise BcnError(
            f"{count} images were asked of {dataset.name} {dataset.split}, which has {len(images)}: ask for fewer"
        )
    return replace(dataset, rows=dataset.rows[dataset.rows[:, 0] <= images[count - 1]])
