"""Images with questions in words, from a directory in one of the layouts of `layout.py`, as a Dataset.

Questions are read once to arrays of numbers, images decoded once to a memory-mapped array, both kept in the cache.
A row of the data set is an image with up to ten of its questions; an image with more has several rows. A batch is
padded to its longest question with 0, and to the most questions of a row with questions of padding only, whose answer
is -100: cross_entropy ignores it. A question without an answer (a test split) has -100 too; one whose answer the
training split never gives has -1, and counts as wrong.

T questions, N images, B rows of a batch, Q questions of a row, L words of a question, C x S x S pixels.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import pad

from bcn.data.cache import open_cache
from bcn.data.clevr_like.program import KINDS
from bcn.data.clevr_like.scene import ATTRIBUTES, VERSION
from bcn.data.dataset import LACKED, NO_ANSWER, Batch, Dataset, Preprocessing
from bcn.data.images import random_crop, resize, to_rgb_or_gray
from bcn.data.vqa.layouts import (
    LINES,
    NO_KIND,
    is_ours,
    list_splits,
    question_file,
    read_questions,
    training_split,
)
from bcn.data.vqa.vocabulary import PADDING, SPECIAL, UNKNOWN, Vocabulary, tokens
from bcn.errors import BcnError

ANSWERS = ("yes", "no", *map(str, range(11)), *(value for values in ATTRIBUTES.values() for value in values))
"""CLEVR's 28 answers"""
ROW = 10
"""most questions of a row"""
KEPT = 2
"""counts up when other things are kept of a file of questions, so that no older cache is read"""
CLEVR_PIXELS = Preprocessing(mean=(0.464, 0.462, 0.455), std=(0.096, 0.092, 0.098))
"""mean and spread of original images; ours have the same to a hundredth"""


@dataclass(eq=False)
class QuestionDataset(Dataset):
    """What `Dataset` asks for, over images with questions in words."""

    name: str
    split: str
    vocabulary: Vocabulary
    answers: tuple[str, ...]
    kinds: tuple[str, ...]
    image: np.ndarray
    """(N, 3, S, S) uint8, memory-mapped"""
    question: np.ndarray
    """(T, L) numbers of words, those of an image one after the other"""
    answer: np.ndarray
    """(T,)"""
    kind: np.ndarray
    """(T,)"""
    number: np.ndarray
    """(T,) the question's own `question_index`, for submissions"""
    place: np.ndarray
    """(T,) where the question stands in its file"""
    rows: np.ndarray
    """(rows, 3): the image, its first question, how many"""
    files: tuple[str, ...] = ()
    """(N,) the images, where they are files"""
    preprocessing: Preprocessing = CLEVR_PIXELS

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Sequence[int] | np.ndarray) -> Batch:
        rows = self.rows[np.asarray(index, np.intp)]
        place_BQ, asked_BQ = self._asked(rows)
        question_BQL = np.where(asked_BQ[..., None], self.question[place_BQ], PADDING)
        longest = int((question_BQL != PADDING).sum(-1).max())
        return Batch(
            image=torch.from_numpy(np.ascontiguousarray(self.image[rows[:, 0]])),
            answer=torch.from_numpy(np.where(asked_BQ, self.answer[place_BQ], NO_ANSWER)),
            question=torch.from_numpy(question_BQL[..., : max(longest, 1)].astype(np.int64)),
            kind=torch.from_numpy(np.where(asked_BQ, self.kind[place_BQ], 0)) if self.kinds else None,
        )

    def _asked(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the questions of some rows stand, 0 where a row has fewer than others, and where it has one."""
        place_BQ = rows[:, 1:2] + np.arange(rows[:, 2].max())
        asked_BQ = place_BQ < rows[:, 1:2] + rows[:, 2:]
        return np.where(asked_BQ, place_BQ, 0), asked_BQ

    def first(self, images: int) -> "QuestionDataset":
        """The same with the first so many images only."""
        if not 1 <= images <= len(self.image):
            raise BcnError(f"{images} images were asked of {self.name} {self.split}: give 1 to {len(self.image)}")
        return replace(self, image=self.image[:images], rows=self.rows[self.rows[:, 0] < images])

    def questions(self, row: int) -> range:
        """The questions of a row: where they stand in `question`, `answer`, `number` and so on."""
        _, start, count = self.rows[row].tolist()
        return range(start, start + count)

    def augment(self, batch: Batch, generator: torch.Generator) -> Batch:
        """Move each image by up to a 16th of its size, its edge repeated; where things are among each other stays.

        Where questions are CLEVR's, mirror half of the images, and let left and right change places in what is asked.
        """
        border, words = batch.image.shape[2] // 16, self.vocabulary.words
        moved_BCHW, by_B2 = random_crop(pad(batch.image, [border] * 4, mode="replicate"), border, generator)
        point_BT2 = None if batch.point is None else batch.point + by_B2[:, None] / batch.image.shape[2]
        batch = batch._replace(image=moved_BCHW, point=point_BT2)
        if self.kinds != KINDS or not {"left", "right"} <= set(words):
            return batch
        assert batch.question is not None
        left, right = (words.index(side) + SPECIAL for side in ("left", "right"))
        mirrored_B11 = torch.randint(2, (len(moved_BCHW), 1, 1), generator=generator).bool()
        other_BQL = batch.question.where(batch.question != left, right).where(batch.question != right, left)
        if point_BT2 is not None:
            x_BT, y_BT = point_BT2.unbind(-1)
            point_BT2 = torch.stack([x_BT.where(~mirrored_B11[..., 0], 1 - x_BT), y_BT], dim=-1)
        return batch._replace(
            image=moved_BCHW.flip(3).where(mirrored_B11[..., None], moved_BCHW),
            question=other_BQL.where(mirrored_B11, batch.question),
            point=point_BT2,
        )

    def checksum(self) -> str:
        digest = hashlib.sha256()
        for row in range(0, len(self), 256):
            batch = self[np.arange(row, min(row + 256, len(self)))]
            for tensor in (batch.image, batch.question, batch.answer, batch.kind):
                if tensor is not None:
                    digest.update(tensor.numpy().tobytes())
        return digest.hexdigest()


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
    vocabulary = vocabulary or Vocabulary.of(learned["words"].tolist())
    own = (root / LINES).exists()
    if answers is None:
        answers = sorted(learned["answers"].tolist()) if own or set(learned["answers"]) - set(ANSWERS) else ANSWERS
    kinds = tuple(sorted(text["kinds"].tolist())) if own else KINDS * bool(len(text["kinds"]))
    if kinds and (text["kind"] < 0).any():
        kinds = (*kinds, NO_KIND)
    word = {name: place + SPECIAL for place, name in enumerate(vocabulary.words)}
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


def name_of(root: Path) -> str:
    """The data set that a directory holds; of one's own, that of the directory."""
    if (root / LINES).exists():
        return root.resolve().name
    return VERSION if is_ours(question_file(root, list_splits(root)[0])) else "clevr-v1.0"


def _renumber(local: np.ndarray, table: list[int]) -> np.ndarray:
    """Numbers of the file's own lists as numbers of ours; the table's last entry is for -1."""
    return np.asarray(np.array([*table, NO_ANSWER], np.int64)[local])


def _places(names: np.ndarray, among: Sequence[str]) -> list[int]:
    place = {name: index for index, name in enumerate(among)}
    return [place.get(name, LACKED) for name in names.tolist()]


def _read_text(root: Path, split: str) -> dict[str, np.ndarray]:
    """The questions of a split as arrays, with the lists of words, answers, kinds and files that they count by."""
    return open_cache(
        name_of(root), f"{split}-text-{_mark(root, split)}", lambda place: _write_text(root, split, place)
    )


def _mark(root: Path, split: str) -> str:
    """Changes with the file that a split comes from, and with what is made of it."""
    path = question_file(root, split).resolve()
    state = path.stat()
    return hashlib.sha256(f"{path} {state.st_size} {state.st_mtime_ns} {KEPT}".encode()).hexdigest()[:12]


class _Numbers(dict[str, int]):
    """Numbers names as they come."""

    def __missing__(self, name: str) -> int:
        self[name] = len(self)
        return self[name]


def _write_text(root: Path, split: str, place: Path) -> None:
    words, answers, kinds, files = _Numbers(), _Numbers(), _Numbers(), _Numbers()
    question, answer, kind, image, number = [], [], [], [], []
    for asked in read_questions(root, split):
        question.append(np.array([words[word] + 1 for word in tokens(asked.question)], np.uint32))
        answer.append(-1 if asked.answer is None else answers[asked.answer])
        kind.append(-1 if asked.kind is None else kinds[asked.kind])
        image.append(files[asked.image.as_posix()])
        number.append(asked.number)
    if not question:
        raise BcnError(f"{question_file(root, split)} asks nothing in the split {split}: give a file with questions")
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
