"""A split of images and questions opened from a directory: encoded and decoded once, kept in the cache.

Questions become arrays of numbers with the lists of words, answers, kinds and files that these count by; images become
one memory-mapped array.

T questions, N images, S x S pixels.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np

from bcn.data.cache import open_cache
from bcn.data.dataset import IGNORE_INDEX, OUT_OF_VOCABULARY
from bcn.data.images import resize, to_rgb_or_gray
from bcn.data.vqa.clevr import ANSWERS, KINDS
from bcn.data.vqa.dataset import ROW, QuestionDataset
from bcn.data.vqa.jsonl import OTHER_KIND
from bcn.data.vqa.layouts import is_own, name_of, questions_file, read_questions, training_split
from bcn.data.vqa.vocabulary import NUM_SPECIAL, PADDING, UNKNOWN, Vocabulary, tokenize
from bcn.errors import BcnError

CACHE_VERSION = 2
"""counts up when the cached arrays change, so that no older cache is read"""


def open_questions(
    directory: str | Path,
    split: str,
    *,
    size: int = 128,
    images: int | None = None,
    vocabulary: Vocabulary | None = None,
    answers: Sequence[str] | None = None,
) -> QuestionDataset:
    """Open a split.

    Words and answers are those of this split, unless a model brings its own.
    """
    root = Path(directory).expanduser()
    text, training = _read_text(root, split), training_split(root)
    learned = text if training in (None, split) else _read_text(root, str(training))
    vocabulary = vocabulary or Vocabulary.from_words(learned["words"].tolist())
    own = is_own(root)
    if answers is None:
        answers = sorted(learned["answers"].tolist()) if own or set(learned["answers"]) - set(ANSWERS) else ANSWERS
    kinds = tuple(sorted(text["kinds"].tolist())) if own else KINDS * bool(len(text["kinds"]))
    if kinds and (text["kind"] < 0).any():
        kinds = (*kinds, OTHER_KIND)
    word = {name: place + NUM_SPECIAL for place, name in enumerate(vocabulary.words)}
    dataset = QuestionDataset(
        name=name_of(root),
        split=split,
        vocabulary=vocabulary,
        answers=tuple(answers),
        kinds=kinds,
        image=_read_images(root, split, text["files"].tolist(), size),
        question=_renumber(text["question"], [PADDING, *(word.get(name, UNKNOWN) for name in text["words"].tolist())]),
        answer=_renumber(text["answer"], _places(text["answers"], answers)),
        kind=np.where(text["kind"] < 0, len(kinds) - 1, _renumber(text["kind"], _places(text["kinds"], kinds))),
        number=text["number"],
        place=text["place"],
        rows=text["rows"],
        files=tuple(text["files"].tolist()),
    )
    return dataset if images is None else dataset.first(images)


def _renumber(local: np.ndarray, table: list[int]) -> np.ndarray:
    """Numbers of the file's own lists as numbers of ours; the table's last entry is for -1."""
    return np.asarray(np.array([*table, IGNORE_INDEX], np.int64)[local])


def _places(names: np.ndarray, among: Sequence[str]) -> list[int]:
    place = {name: index for index, name in enumerate(among)}
    return [place.get(name, OUT_OF_VOCABULARY) for name in names.tolist()]


def _read_text(root: Path, split: str) -> dict[str, np.ndarray]:
    """The questions of a split as arrays, with the lists of words, answers, kinds and files that they count by."""
    return open_cache(
        name_of(root), f"{split}-text-{_mark(root, split)}", lambda place: _write_text(root, split, place)
    )


def _mark(root: Path, split: str) -> str:
    """Changes with the file that a split comes from, and with what is made of it."""
    path = questions_file(root, split).resolve()
    state = path.stat()
    return hashlib.sha256(f"{path} {state.st_size} {state.st_mtime_ns} {CACHE_VERSION}".encode()).hexdigest()[:12]


class _Numbers(dict[str, int]):
    """Numbers names as they come."""

    def __missing__(self, name: str) -> int:
        self[name] = len(self)
        return self[name]


def _write_text(root: Path, split: str, place: Path) -> None:
    words, answers, kinds, files = _Numbers(), _Numbers(), _Numbers(), _Numbers()
    question, answer, kind, image, number = [], [], [], [], []
    for each in read_questions(root, split):
        question.append(np.array([words[word] + 1 for word in tokenize(each.text)], np.uint32))
        answer.append(-1 if each.answer is None else answers[each.answer])
        kind.append(-1 if each.kind is None else kinds[each.kind])
        image.append(files[each.image.as_posix()])
        number.append(each.number)
    if not question:
        raise BcnError(f"{questions_file(root, split)} asks nothing in the split {split}: give a file with questions")
    order = np.argsort(image, kind="stable")  # the questions of an image one after the other
    padded = np.zeros((len(question), max(map(len, question))), np.uint16 if len(words) < 1 << 16 else np.uint32)
    for row, number_in_file in enumerate(order):
        padded[row, : len(question[number_in_file])] = question[number_in_file]
    np.save(place / "question.npy", padded)
    np.save(place / "rows.npy", _rows(np.bincount(image)))
    np.save(place / "place.npy", order)
    for name, values in {"answer": answer, "kind": kind, "number": number}.items():
        np.save(place / f"{name}.npy", np.array(values, np.int64)[order])
    for name, names in {"words": words, "answers": answers, "kinds": kinds, "files": files}.items():
        np.save(place / f"{name}.npy", np.array(list(names), dtype=np.str_))


def _rows(counts: np.ndarray) -> np.ndarray:
    rows, start = [], 0
    for image, count in enumerate(counts.tolist()):
        rows += [(image, start + first, min(ROW, count - first)) for first in range(0, count, ROW)]
        start += count
    return np.array(rows, np.int64)


def _read_images(root: Path, split: str, files: list[str], size: int) -> np.ndarray:
    def write(place: Path) -> None:
        array = np.lib.format.open_memmap(
            place / "image.npy", mode="w+", dtype=np.uint8, shape=(len(files), 3, size, size)
        )
        for index, picture in enumerate(_decode([root / file for file in files], size)):
            array[index] = picture
        array.flush()

    return open_cache(name_of(root), f"{split}-{size}-{_mark_images(root, files)}", write)["image"]


def _mark_images(root: Path, files: list[str]) -> str:
    """Changes when an image is replaced, comes or goes."""
    digest, place = hashlib.sha256(), root.resolve()
    for file in files:
        path, seen = os.path.join(place, file), "nothing"
        with suppress(OSError, ValueError):  # who decodes it will say so
            state = os.stat(path)
            seen = f"{state.st_size} {state.st_mtime_ns}"
        digest.update(f"{path} {seen}\n".encode())
    return digest.hexdigest()[:12]


def _decode(paths: list[Path], size: int) -> Iterator[np.ndarray]:
    """Images (3, size, size), in parallel, a few at a time, with a progress bar where it takes long."""
    from rich.console import Console
    from rich.progress import track

    def decode(path: Path) -> np.ndarray:
        from PIL import Image

        try:
            with Image.open(path) as image:
                return resize(to_rgb_or_gray(image), (3, size, size))
        except (OSError, SyntaxError, ValueError, RuntimeError, Image.DecompressionBombError) as error:
            raise BcnError(f"cannot read the image {path}: {error}; `bcn data check` finds all such files") from error

    block = 256
    quiet = Console(stderr=True, quiet=len(paths) < block)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        blocks = range(0, len(paths), block)
        for start in track(blocks, f"decoding {len(paths):,} images", console=quiet):
            yield from pool.map(decode, paths[start : start + block])
