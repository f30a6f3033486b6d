"""A split of images and questions opened from a directory: encoded and decoded once, kept in the cache.

Questions become arrays of indices, with the lists of words, answers, kinds and files that these refer to; images become
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

from bcn.data.cache import open_cache, write_array
from bcn.data.dataset import IGNORE_INDEX, MAX_NAMES, OUT_OF_VOCABULARY
from bcn.data.decode import decode_image
from bcn.data.images import resize
from bcn.data.vqa.clevr import ANSWERS, KINDS
from bcn.data.vqa.dataset import MAX_QUESTIONS, QuestionDataset
from bcn.data.vqa.jsonl import OTHER_KIND
from bcn.data.vqa.layouts import is_own, name_of, questions_file, read_questions, training_split
from bcn.data.vqa.vocabulary import NUM_SPECIAL, PADDING, UNKNOWN, Vocabulary, tokenize
from bcn.errors import BcnError

CACHE_VERSION = 4
"""counts up when the cached arrays change, so that no older cache is read"""


def open_questions(
    directory: str | Path,
    split: str,
    *,
    size: int = 128,
    images: int | None = None,
    vocabulary: Vocabulary | None = None,
    answers: Sequence[str] | None = None,
    image_root: Path | None = None,
) -> QuestionDataset:
    """Open a split.

    Args:
        directory: in one of the layouts of layouts.py.
        size: width and height of the images.
        images: take the first `images` only.
        vocabulary: of a trained model (default: that of the training split).
        answers: of a trained model (default: CLEVR's, or those of the training split).
        image_root: where the images lie (default: in `directory`).
    """
    root = Path(directory).expanduser()
    text, own = _read_text(root, split), is_own(root)
    if vocabulary is None or answers is None:  # a trained model brings both, and needs no training questions
        training = training_split(root)
        learned = text if training in (None, split) else _read_text(root, str(training))
        vocabulary = vocabulary or Vocabulary.from_words(learned["words"].tolist())
        if answers is None:
            answers = sorted(learned["answers"].tolist()) if own or set(learned["answers"]) - set(ANSWERS) else ANSWERS
    kinds = tuple(sorted(text["kinds"].tolist())) if own else KINDS * bool(len(text["kinds"]))
    if kinds and (text["kind"] < 0).any():
        kinds = (*kinds, OTHER_KIND)
    word = {name: index + NUM_SPECIAL for index, name in enumerate(vocabulary.words)}
    dataset = QuestionDataset(
        name=name_of(root),
        split=split,
        vocabulary=vocabulary,
        answers=tuple(answers),
        kinds=kinds,
        image=_read_images(name_of(root), image_root or root, split, text["files"].tolist(), size),
        question=_reindex(text["question"], [PADDING, *(word.get(name, UNKNOWN) for name in text["words"].tolist())]),
        answer=_reindex(text["answer"], _indices(text["answers"], answers)),
        kind=np.where(text["kind"] < 0, len(kinds) - 1, _reindex(text["kind"], _indices(text["kinds"], kinds))),
        question_index=text["question_index"],
        position=text["position"],
        rows=text["rows"],
        files=tuple(text["files"].tolist()),
    )
    return dataset if images is None else dataset.first(images)


def _reindex(local: np.ndarray, table: list[int]) -> np.ndarray:
    """Indices of the file's own lists as indices of the data set's; -1 becomes IGNORE_INDEX."""
    return np.asarray(np.array([*table, IGNORE_INDEX], np.int64)[local])


def _indices(names: np.ndarray, choices: Sequence[str]) -> list[int]:
    index = {name: position for position, name in enumerate(choices)}
    return [index.get(name, OUT_OF_VOCABULARY) for name in names.tolist()]


def _read_text(root: Path, split: str) -> dict[str, np.ndarray]:
    """The questions of a split as arrays, with the lists of words, answers, kinds and files that they refer to."""
    part = f"{split}-text-{_fingerprint(root, split)}"
    return open_cache(name_of(root), part, lambda directory: _write_text(root, split, directory))


def _fingerprint(root: Path, split: str) -> str:
    """Changes with the file that a split comes from, and with CACHE_VERSION."""
    path = questions_file(root, split).resolve()
    state = path.stat()
    return hashlib.sha256(f"{path} {state.st_size} {state.st_mtime_ns} {CACHE_VERSION}".encode()).hexdigest()[:12]


class _Index(dict[str, int]):
    """Gives each new name the next index."""

    def __missing__(self, name: str) -> int:
        self[name] = len(self)
        return self[name]


def _write_text(root: Path, split: str, directory: Path) -> None:
    words, answers, kinds, files = _Index(), _Index(), _Index(), _Index()
    question, answer, kind, image, question_index = [], [], [], [], []
    for each in read_questions(root, split):
        question.append(np.array([words[word] + 1 for word in tokenize(each.text)], np.uint32))
        answer.append(-1 if each.answer is None else answers[each.answer])
        kind.append(-1 if each.kind is None else kinds[each.kind])
        image.append(files[each.image.as_posix()])
        question_index.append(each.number)
    if not question:
        raise BcnError(f"{questions_file(root, split)} has no questions of the split {split}: give a file that has")
    for many, names in {"words": words, "answers": answers, "kinds": kinds}.items():
        if len(names) > MAX_NAMES:
            raise BcnError(
                f"{questions_file(root, split)} has {len(names):,} different {many}: accepted are up to {MAX_NAMES:,}"
            )
    order = np.argsort(image, kind="stable")  # the questions of an image one after the other
    padded = np.zeros((len(question), max(map(len, question))), np.uint16 if len(words) < 1 << 16 else np.uint32)
    for row, position in enumerate(order):
        padded[row, : len(question[position])] = question[position]
    np.save(directory / "question.npy", padded)
    np.save(directory / "rows.npy", _rows(np.bincount(image)))
    np.save(directory / "position.npy", order)
    for name, values in {"answer": answer, "kind": kind, "question_index": question_index}.items():
        np.save(directory / f"{name}.npy", np.array(values, np.int64)[order])
    for name, names in {"words": words, "answers": answers, "kinds": kinds, "files": files}.items():
        np.save(directory / f"{name}.npy", np.array(list(names), dtype=np.str_))


def _rows(counts: np.ndarray) -> np.ndarray:
    """`QuestionDataset.rows`, given the number of questions about each image."""
    rows, start = [], 0
    for image, count in enumerate(counts.tolist()):
        for first in range(0, count, MAX_QUESTIONS):
            rows.append((image, start + first, min(MAX_QUESTIONS, count - first)))
        start += count
    return np.array(rows, np.int64)


def _read_images(name: str, root: Path, split: str, files: list[str], size: int) -> np.ndarray:
    def write(directory: Path) -> None:
        images, shape = _decode([root / file for file in files], size), (len(files), 3, size, size)
        write_array(directory / "image.npy", images, shape=shape, dtype=np.dtype(np.uint8))

    return open_cache(name, f"{split}-{size}-{_image_fingerprint(root, files)}", write)["image"]


def _image_fingerprint(root: Path, files: list[str]) -> str:
    """Changes when an image is replaced, comes or goes."""
    digest, resolved = hashlib.sha256(), root.resolve()
    for file in files:
        path, stamp = os.path.join(resolved, file), "nothing"
        with suppress(OSError, ValueError):  # decoding will report it
            state = os.stat(path)
            stamp = f"{state.st_size} {state.st_mtime_ns}"
        digest.update(f"{path} {stamp}\n".encode())
    return digest.hexdigest()[:12]


def _decode(paths: list[Path], size: int) -> Iterator[np.ndarray]:
    """Images (3, size, size), decoded in parallel in blocks, with a progress bar where there are several."""
    from rich.console import Console
    from rich.progress import track

    def decode(path: Path) -> np.ndarray:
        try:
            return resize(decode_image(path), (3, size, size))
        except (OSError, ValueError) as error:
            raise BcnError(f"cannot read the image {path}: {error}; `bcn data check` finds all such files") from error

    block = 256
    quiet = Console(stderr=True, quiet=len(paths) < block)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        blocks = range(0, len(paths), block)
        for start in track(blocks, f"decoding {len(paths):,} images", console=quiet):
            yield from pool.map(decode, paths[start : start + block])
