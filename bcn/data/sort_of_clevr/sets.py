"""The data sets: images, questions and answers of one of the versions, kept in memory or made as they are asked for.

B images in a batch, N in all, Q questions about each.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bcn.data.batch import Batch, Preprocessing
from bcn.data.sort_of_clevr.bits import permutation, words
from bcn.data.sort_of_clevr.drawing import draw, draw_chunks
from bcn.data.sort_of_clevr.questions import (
    ANSWERS,
    KINDS,
    LEGACY_OWN_DISTANCE,
    answer_all,
    every_question,
    question_bits,
    sample_distinct,
    sample_with_replacement,
)
from bcn.data.sort_of_clevr.scene import Scenes, scenes_legacy, scenes_v1
from bcn.errors import BcnError, did_you_mean

V1, LEGACY, STREAM = "sort-of-clevr-v1", "sort-of-clevr-legacy", "sort-of-clevr-stream"
VERSIONS = (V1, LEGACY, STREAM)
SPLITS = ("train", "val", "test")
SIZES = {V1: (9800, 1000, 5000), LEGACY: (9800, 1000, 200), STREAM: (9800, 1000, 5000)}
STREAMS = {V1: (0, 1, 2), LEGACY: (4, 5, 6), STREAM: (3, 1, 2)}
"""the number of each split's stream of samples; a fresh stream is validated and tested on the images of v1"""

Questions = Literal["sampled", "all"]
CHUNK = 500
"""images read at a time for a checksum"""
BLOCK = 2048
"""scenes of a stream that are placed together: enough to be quick, few enough to stay in the cache"""


Asked = tuple[Scenes, np.ndarray, np.ndarray]
"""scenes, the numbers of their questions, and the answers"""


class Samples(NamedTuple):
    image: np.ndarray
    """(B, 3, 75, 75) uint8"""
    number: np.ndarray
    """(B, Q) the number of each question, 0 to 35"""
    answer: np.ndarray
    """(B, Q) index in ANSWERS"""


class Generator:
    """Everything about a sample is a function of the version, the seed, the split and the sample's index."""

    def __init__(self, version: str, split: str, *, seed: int, objects: int, questions: Questions) -> None:
        self.legacy = version == LEGACY
        self.stream = words(seed, STREAMS[version][SPLITS.index(split)])
        self.objects = objects
        self.questions = questions

    def scenes(self, index: Sequence[int] | np.ndarray) -> Scenes:
        sample_B = words(self.stream, np.asarray(index))
        return scenes_legacy(sample_B) if self.legacy else scenes_v1(sample_B, objects=self.objects)

    def samples(self, index: Sequence[int] | np.ndarray) -> Samples:
        scenes, number_NQ, answer_NQ = self.ask(index)
        return Samples(draw(scenes), number_NQ, answer_NQ)

    def ask(self, index: Sequence[int] | np.ndarray) -> Asked:
        sample_N = words(self.stream, np.asarray(index))
        scenes = self.scenes(index)
        if self.questions == "all":
            number_NQ = every_question(scenes.present, objects=self.objects)
        elif self.legacy:
            number_NQ = sample_with_replacement(sample_N)
        else:
            number_NQ = sample_distinct(sample_N, scenes.present, objects=self.objects)
        answer_N36 = answer_all(scenes, own_distance=LEGACY_OWN_DISTANCE if self.legacy else None)
        return scenes, number_NQ, np.take_along_axis(answer_N36, number_NQ, axis=1)


class SortOfClevr:
    """`images` samples of a split, drawn once and kept; `SortOfClevrStream` is the set that is never the same twice."""

    answers: tuple[str, ...] = ANSWERS
    kinds: tuple[str, ...] = KINDS
    preprocessing = Preprocessing()

    def __init__(self, name: str, split: str, images: int, generator: Generator) -> None:
        self.name, self.split, self.images, self.generator = name, split, images, generator
        self.question_bits = torch.from_numpy(question_bits())
        self._prepare()

    def _prepare(self) -> None:
        self._samples = [torch.from_numpy(part) for part in self.generator.samples(np.arange(self.images))]

    def _read(self, index: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
        image, number, answer = (part[torch.from_numpy(index)] for part in self._samples)
        return image, number, answer

    def __len__(self) -> int:
        return self.images

    def __getitem__(self, index: Sequence[int] | np.ndarray) -> Batch:
        image_BCHW, number_BQ, answer_BQ = self._read(np.asarray(index, dtype=np.int64))
        return Batch(image_BCHW, *self._encode(number_BQ, answer_BQ))

    def _encode(self, number_BQ: Tensor, answer_BQ: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Answers, questions as bits, and kinds, as a batch has them."""
        number_BQ = number_BQ.long()
        question_BQD = self.question_bits.index_select(0, number_BQ.flatten()).view(*number_BQ.shape, 11)
        return answer_BQ.long(), question_BQD, number_BQ // 6

    def scenes(self, index: Sequence[int] | np.ndarray) -> Scenes:
        """The scenes of these samples as data: positions, shapes, which colours are present."""
        return self.generator.scenes(index)

    def order(self, epoch: int, *, seed: int) -> np.ndarray:
        return permutation(seed, epoch, self.images)

    def augment(self, image_BCHW: Tensor, generator: torch.Generator) -> Tensor:
        return image_BCHW

    def checksum(self) -> str:
        """SHA-256 over sample after sample: the image, the numbers of its questions, its answers, in single bytes."""
        digest = hashlib.sha256()
        for chunk in _chunks(self.images):
            parts = [part.numpy().reshape(len(part), -1) for part in self._read(np.arange(chunk.start, chunk.stop))]
            digest.update(np.concatenate(parts, axis=1).tobytes())
        return digest.hexdigest()


class SortOfClevrStream(SortOfClevr):
    """Fresh images without end: any index may be asked for, and `images` is only how many make an epoch."""

    def _prepare(self) -> None:
        self._ahead: dict[int, Asked] = {}

    def _read(self, index: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
        if (index < 0).any():
            raise BcnError(f"index {index.min()}: a stream is indexed from 0 on")
        scenes, number_BQ, answer_BQ = self._ask(index)
        return torch.from_numpy(draw(scenes)), torch.from_numpy(number_BQ), torch.from_numpy(answer_BQ)

    def _ask(self, index: np.ndarray) -> Asked:
        """As the generator, but for indices that lie together it makes the whole block, which the next ones are in."""
        blocks = np.unique(index // BLOCK).tolist()
        if len(blocks) > 2 or len(index) < 16:
            return self.generator.ask(index)
        self._ahead = {
            block: self._ahead.get(block) or self.generator.ask(block * BLOCK + np.arange(BLOCK)) for block in blocks
        }
        row = index % BLOCK + BLOCK * (index // BLOCK > blocks[0])
        scenes, number_NQ, answer_NQ = zip(*self._ahead.values(), strict=True)
        return (
            Scenes(*(np.concatenate(part)[row] for part in zip(*scenes, strict=True))),
            np.concatenate(number_NQ)[row],
            np.concatenate(answer_NQ)[row],
        )

    def batches(self, index: np.ndarray, size: int) -> Iterator[Batch]:
        """The same as `stream[index]`, `size` images at a time: much quicker than asking for batch after batch."""
        step = max(1, BLOCK // size) * size
        for first in range(0, len(index), step):
            scenes, number_NQ, answer_NQ = self.generator.ask(index[first : first + step])
            encoded = self._encode(torch.from_numpy(number_NQ), torch.from_numpy(answer_NQ))
            for i, image_B3HW in enumerate(draw_chunks(scenes, size)):
                yield Batch(torch.from_numpy(image_B3HW), *(part[i * size : (i + 1) * size] for part in encoded))

    def order(self, epoch: int, *, seed: int) -> np.ndarray:
        """The next indices; each seed has four thousand million of its own."""
        if not 0 <= seed < 2**31 or (epoch + 1) * self.images > 2**32:
            raise BcnError(f"seed {seed}, epoch {epoch}: a stream has seeds below 2**31, each with 2**32 images")
        return (seed << 32) + epoch * self.images + np.arange(self.images)


def _chunks(images: int) -> Iterator[slice]:
    return (slice(first, min(first + CHUNK, images)) for first in range(0, images, CHUNK))


def make_sort_of_clevr(
    version: str,
    split: str,
    *,
    images: int | None = None,
    seed: int = 0,
    questions: Questions = "sampled",
    objects: int = 6,
) -> SortOfClevr:
    """Make a split of a version of Sort-of-CLEVR, as docs/sort-of-clevr.md specifies it.

    >>> batch = make_sort_of_clevr("sort-of-clevr-v1", "val", images=5)[[0, 4]]
    >>> batch.image.shape, batch.question.shape, batch.answer.shape
    (torch.Size([2, 3, 75, 75]), torch.Size([2, 20, 11]), torch.Size([2, 20]))
    """
    if version not in VERSIONS:
        raise did_you_mean("version of Sort-of-CLEVR", version, VERSIONS)
    if split not in SPLITS:
        raise did_you_mean("split", split, SPLITS)
    if questions not in ("sampled", "all"):
        raise did_you_mean("choice of questions", questions, ("sampled", "all"))
    if not 2 <= objects <= 6 or (version == LEGACY and objects != 6):
        accepted = "6" if version == LEGACY else "2 to 6"
        raise BcnError(f"objects={objects}: a scene of {version} has {accepted} objects")
    images = SIZES[version][SPLITS.index(split)] if images is None else images
    if images < 1:
        raise BcnError(f"images={images}: a data set has at least one image")
    if not 0 <= seed < 2**64:
        raise BcnError(f"seed={seed}: a seed is a number from 0 to 2**64 - 1")
    generator = Generator(version, split, seed=seed, objects=objects, questions=questions)
    if version == STREAM:
        if split == "train":
            return SortOfClevrStream(version, split, images, generator)
        version = V1
    return SortOfClevr(version, split, images, generator)
