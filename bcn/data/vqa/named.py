"""The data sets of questions in words that have a name: CLEVR, ours like it, and a directory of one's own.

The answers of CLEVR's own test split are not public. So `test` of "clevr-v1.0" is its split val, as everywhere in the
literature, and `val`, by which an epoch may be chosen, the last 1,000 images of its split train, which are not trained
on. In a directory of CoGenT's, the same holds of its condition A, and valB is opened by its own name.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bcn.data.dataset import NO_ANSWER
from bcn.data.vqa.dataset import QuestionDataset, name_of, open_questions
from bcn.data.vqa.layouts import LINES, list_splits
from bcn.data.vqa.vocabulary import Vocabulary
from bcn.errors import BcnError
from bcn.io import data_root

SPLITS = ("train", "val", "test")
HELD_OUT = 1000
REMEDIES = {
    "clevr-v1.0": "not here: unpack CLEVR_v1.0.zip from https://cs.stanford.edu/people/jcjohns/clevr into BCN_DATA",
    "clevr-like-v1": "not made yet: `bcn clevr make $BCN_DATA/clevr-like-v1`, with --split train, val and test",
    "clevr-like-v1-224": "not made yet: `bcn clevr make $BCN_DATA/clevr-like-v1-224 --size 224`, with each --split",
    "own": "give the directory that has questions.jsonl with --data",
}
REMEDIES["clevr-v1.0-224"] = REMEDIES["clevr-v1.0"]


def find_named(name: str, data: str | Path | None = None) -> list[Path]:
    """The directory of a named data set, if it is there: `data` itself, or in it the directory of this name."""
    root = data_root(data)
    folder = {"own": ".", "clevr-v1.0": "CLEVR_v1.0", "clevr-v1.0-224": "CLEVR_v1.0"}.get(name, name)
    for place in (root / folder, root):
        if (place / LINES).is_file() if name == "own" else (place / "questions").is_dir():
            return [place]
    return []


def open_named(
    name: str,
    split: str,
    *,
    data: str | Path | None = None,
    images: int | None = None,
    size: int | None = None,
    vocabulary: Vocabulary | None = None,
    answers: Sequence[str] | None = None,
) -> QuestionDataset:
    """Open a split of a named data set, in the words and answers of its training split, unless a model brings its own.

    An own one without answers in a split `test` has its split `val` in its place, and says so in `split`. `size` is for
    one's own images: those of the others are in their names.
    """
    if not (found := find_named(name, data)):
        raise BcnError(f"{name} is not in {data_root(data)}: {REMEDIES[name]}")
    directory, start, stop = found[0], 0, None
    size = size if size and name == "own" else 224 if name.endswith("-224") else 128
    there = list_splits(directory)
    if name != "own" and (held := name_of(directory)) != name.removesuffix("-224"):
        raise BcnError(f"{directory} holds {held}, not {name}: give another directory with --data or BCN_DATA")

    def opened(which: str) -> QuestionDataset:
        return open_questions(directory, which, size=size, vocabulary=vocabulary, answers=answers)

    if split not in {*SPLITS, *there}:
        raise BcnError(f"{name} has no split {split!r}: it has {', '.join(dict.fromkeys([*SPLITS, *there]))}")
    if name.startswith("clevr-v1.0") and split in SPLITS:
        condition = "A" if "trainA" in there and "train" not in there else ""  # CoGenT's
        dataset = opened(("val" if split == "test" else "train") + condition)
        kept = max(1, len(dataset.image) - HELD_OUT)
        start, stop = {"val": (kept, None), "test": (0, None)}.get(split, (0, kept))
    else:
        wanted = "val" if name == "own" and split == "test" and "test" not in there else split
        if wanted not in there:
            remedy = f'give some of its lines "split": "{wanted}"'
            if name != "own":
                remedy = f"`bcn clevr make {directory} --split {wanted} --size {size}` makes it"
            raise BcnError(f"{directory} has no split {wanted!r}: it has {', '.join(there)}; {remedy}")
        dataset = opened(wanted)
        if name == "own" and split == wanted == "test" and "val" in there and (dataset.answer == NO_ANSWER).all():
            dataset = opened("val")
        split = dataset.split
    stop = len(dataset.image) if stop is None else stop
    if images is not None and images > stop - start:
        raise BcnError(f"{images} images were asked of {name} {split}, which has {stop - start}: ask for fewer")
    stop = stop if images is None else start + images
    image = dataset.rows[:, 0]
    return replace(dataset, name=name, split=split, rows=dataset.rows[(image >= start) & (image < stop)])
