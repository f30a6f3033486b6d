"""The data sets: images, questions and answers of one of the versions, kept in memory or made as they are asked for.

B images in a batch, Q questions about each, D = 11 bits of a question.
"""

import copy
import hashlib
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import torch

from bcn.data.dataset import Batch, Dataset, Preprocessing
from bcn.data.device_images import images_on_device
from bcn.data.sort_of_clevr.questions import ANSWERS, KINDS, question_bits
from bcn.data.sort_of_clevr.samples import Questions, SampleGenerator, Samples
from bcn.data.sort_of_clevr.scene import COLOURS, Scenes
from bcn.data.sort_of_clevr.symmetry import transform
from bcn.errors import BcnError, did_you_mean

V1, LEGACY, STREAM = "sort-of-clevr-v1", "sort-of-clevr-legacy", "sort-of-clevr-stream"
VERSIONS = (V1, LEGACY, STREAM)
SPLITS = ("train", "val", "test")
SIZES = {V1: (9800, 1000, 5000), LEGACY: (9800, 1000, 200), STREAM: (9800, 1000, 5000)}
STREAMS = {V1: (0, 1, 2), LEGACY: (4, 5, 6), STREAM: (3, 1, 2)}
"""the number of each split's stream of samples; a fresh stream is validated and tested on the images of v1"""

FEWER_OBJECTS = {objects: f"{V1}-{objects}-objects" for objects in (2, 3, 4, 5)}
"""what v1 with fewer objects is called"""
BITS_36D, KIND_36 = question_bits(), np.arange(36) // len(COLOURS)
CHUNK = 500
"""images read at a time for a checksum"""


class SortOfClevr(Dataset):
    """`images` samples of a split, drawn once and kept; `SortOfClevrStream` is the set that is never the same twice."""

    answers: tuple[str, ...] = ANSWERS
    kinds: tuple[str, ...] = KINDS
    question_groups: ClassVar[dict[str, slice]] = {"non_relational": slice(0, 3), "relational": slice(3, 6)}
    preprocessing = Preprocessing()

    def __init__(self, name: str, split: str, images: int, generator: SampleGenerator) -> None:
        self.name, self.split, self.images, self.generator = name, split, images, generator
        self.augments = not generator.legacy  # legacy scenes have objects on the middle line
        self._prepare()

    def _prepare(self) -> None:
        try:
            self._samples = self.generator.samples(np.arange(self.images))
        except (MemoryError, ValueError) as error:
            raise BcnError(f"images={self.images}: there is no memory for so many; ask for fewer") from error

    def _read(self, index: np.ndarray) -> Samples:
        return Samples(*(part[index] for part in self._samples))

    def __len__(self) -> int:
        return self.images

    def __getitem__(self, index: Sequence[int] | np.ndarray) -> Batch:
        image_B3HW, number_BQ, answer_BQ = self._read(np.asarray(index, dtype=np.int64))
        return Batch(
            image=torch.as_tensor(image_B3HW),
            answer=torch.from_numpy(answer_BQ.astype(np.int64)),
            question=torch.from_numpy(BITS_36D.take(number_BQ, axis=0)),
            kind=torch.from_numpy(KIND_36.take(number_BQ)),
        )

    def augment(self, batch: Batch, generator: torch.Generator) -> Batch:
        """Each image mirrored and turned at random, its questions and answers with it."""
        if not self.augments:
            return batch
        return transform(batch, torch.randint(8, (len(batch.image),), generator=generator))

    def curriculum(self, batch: Batch) -> Batch:
        """The non-relational questions, which are the first half."""
        assert batch.question is not None
        assert batch.kind is not None
        half = batch.answer.shape[1] // 2
        return batch._replace(
            answer=batch.answer[:, :half], question=batch.question[:, :half], kind=batch.kind[:, :half]
        )

    def on_device(self, device: torch.device, limit: int) -> "SortOfClevr":
        kept = copy.copy(self)
        kept._samples = self._samples._replace(image=images_on_device(self._samples.image, device, limit))
        return kept

    def scenes(self, index: Sequence[int] | np.ndarray) -> Scenes:
        """The scenes of these samples as data: positions, shapes, which colours are present."""
        return self.generator.scenes(index)

    def checksum(self) -> str:
        """SHA-256 over sample after sample: the image, the numbers of its questions, its answers, in single bytes."""
        digest = hashlib.sha256()
        for first in range(0, self.images, CHUNK):
            read = self._read(np.arange(first, min(first + CHUNK, self.images)))
            digest.update(np.concatenate([part.reshape(len(part), -1) for part in read], axis=1).tobytes())
        return digest.hexdigest()


class SortOfClevrStream(SortOfClevr):
    """Fresh images without end: any index may be asked for, and `images` is only how many make an epoch."""

    def _prepare(self) -> None:
        """Nothing is kept."""

    def on_device(self, device: torch.device, limit: int) -> "SortOfClevrStream":
        return self

    def _read(self, index: np.ndarray) -> Samples:
        if (index < 0).any():
            raise BcnError(f"index {index.min()}: a stream is indexed from 0 on")
        return self.generator.samples(index)

    def order(self, epoch: int, *, seed: int) -> np.ndarray:
        """The next indices; each seed has four thousand million of its own."""
        if not 0 <= seed < 2**31 or (epoch + 1) * self.images > 2**32:
            raise BcnError(f"seed {seed}, epoch {epoch}: a stream has seeds below 2**31, each with 2**32 images")
        return (seed << 32) + epoch * self.images + np.arange(self.images)


def make_sort_of_clevr(
    version: str,
    split: str,
    *,
    images: int | None = None,
    seed: int = 0,
    questions: Questions = "sampled",
    objects: int = 6,
) -> SortOfClevr:
    """Make a split of a version of Sort-of-CLEVR, as docs/reference/sort-of-clevr.md specifies it.

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
    images = SIZES[version][SPLITS.index(split)] if images is None else images
    if images < 1:
        raise BcnError(f"images={images}: a data set has at least one image")
    if not 0 <= seed < 2**64:
        raise BcnError(f"seed={seed}: a seed is a number from 0 to 2**64 - 1")
    number = STREAMS[version][SPLITS.index(split)]
    generator = SampleGenerator(seed, number, legacy=version == LEGACY, objects=objects, questions=questions)
    if version == STREAM and split == "train":
        return SortOfClevrStream(STREAM, split, images, generator)
    name = V1 if version == STREAM else version
    return SortOfClevr(name if objects == 6 else FEWER_OBJECTS[objects], split, images, generator)
