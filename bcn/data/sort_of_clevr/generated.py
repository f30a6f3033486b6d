"""What all versions of Sort-of-CLEVR share: splits of generated samples, kept in memory or made as they are asked for.

B images in a batch, Q questions about each, D bits of a question.
"""

import copy
import hashlib
import math
import os
from collections.abc import Sequence
from typing import ClassVar, NamedTuple, Protocol, Self

import numpy as np
import torch

from bcn.data.dataset import IGNORE_INDEX, Batch, Dataset, Preprocessing
from bcn.data.device_images import Images, images_on_device
from bcn.data.random import fresh_indices
from bcn.errors import BcnError, did_you_mean

SPLITS = ("train", "val", "test")
NO_ANSWER = 255
"""the answer of padding, where an image has fewer questions than others"""
IMAGE_BYTES = 3 * 75 * 75
CHUNK = 500
"""images read at a time for a checksum"""


class Samples(NamedTuple):
    image: Images
    """(N, 3, 75, 75) uint8"""
    number: np.ndarray
    """(N, Q) unsigned, the number of each question"""
    answer: np.ndarray
    """(N, Q) uint8, index of the answer, or NO_ANSWER"""


class Generator(Protocol):
    """Makes samples, as functions of their indices."""

    def samples(self, index: np.ndarray) -> Samples: ...


class GeneratedSplit(Dataset):
    """`images` samples of a split, drawn once and kept."""

    question_bits: ClassVar[np.ndarray]
    """(numbers, D) float32: the bits of each question"""
    kind_of_number: ClassVar[np.ndarray]
    """(numbers,) the kind of each question"""
    preprocessing = Preprocessing()

    def __init__(self, name: str, split: str, images: int, generator: Generator) -> None:
        self.name, self.split, self.images, self._generator = name, split, images, generator
        self._prepare()

    def _prepare(self) -> None:
        refusal = f"images={self.images}: there is no memory for so many; ask for fewer"
        if self.images * IMAGE_BYTES > _memory():  # Linux would promise it, and later kill this process or another
            raise BcnError(refusal)
        try:
            self._samples = self._generator.samples(np.arange(self.images))
        except (MemoryError, ValueError) as error:
            raise BcnError(refusal) from error

    def _read(self, index: np.ndarray) -> Samples:
        return Samples(*(part[index] for part in self._samples))

    def __len__(self) -> int:
        return self.images

    def batch(self, index: Sequence[int] | np.ndarray) -> Batch:
        image_B3HW, number_BQ, answer_BQ = self._read(np.asarray(index, dtype=np.int64))
        return Batch(
            image=torch.as_tensor(image_B3HW),
            answer=torch.from_numpy(np.where(answer_BQ == NO_ANSWER, IGNORE_INDEX, answer_BQ.astype(np.int64))),
            question=torch.from_numpy(self.question_bits.take(number_BQ, axis=0)),
            kind=torch.from_numpy(self.kind_of_number.take(number_BQ)),
        )

    def on_device(self, device: torch.device, limit: int) -> Self:
        kept = copy.copy(self)
        kept._samples = self._samples._replace(image=images_on_device(self._samples.image, device, limit))
        return kept

    def checksum(self) -> str:
        """SHA-256 over sample after sample: the image, the numbers of its questions, low byte first, its answers."""
        digest = hashlib.sha256()
        for first in range(0, self.images, CHUNK):
            image, number, answer = self._read(np.arange(first, min(first + CHUNK, self.images)))
            number = number.astype(number.dtype.newbyteorder("<"), copy=False).view(np.uint8)
            digest.update(np.concatenate([image.reshape(len(image), -1), number, answer], axis=1).tobytes())
        return digest.hexdigest()


class FreshSamples(GeneratedSplit):
    """Fresh images without end: any index may be asked for, and `images` is only how many make an epoch."""

    def _prepare(self) -> None:
        """Nothing is kept."""

    def on_device(self, device: torch.device, limit: int) -> Self:
        return self

    def _read(self, index: np.ndarray) -> Samples:
        if (index < 0).any():
            raise BcnError(f"index {index.min()}: a stream is indexed from 0 on")
        return self._generator.samples(index)

    def order(self, epoch: int, *, seed: int) -> np.ndarray:
        return fresh_indices(self.images, seed=seed, epoch=epoch)


def _memory() -> float:
    """Bytes of memory of this machine; without end where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return math.inf


def check_arguments(version: str, versions: Sequence[str], split: str, images: int, seed: int, questions: str) -> None:
    """Refuse what no version can be made with."""
    for what, given, accepted in (
        ("version of Sort-of-CLEVR", version, versions),
        ("split", split, SPLITS),
        ("choice of questions", questions, ("sampled", "all")),
    ):
        if given not in accepted:
            raise did_you_mean(what, given, accepted)
    if images < 1:
        raise BcnError(f"images={images}: a data set has at least one image")
    if not 0 <= seed < 2**64:
        raise BcnError(f"seed={seed}: a seed is a number from 0 to 2**64 - 1")
