"""What a data set is. A batch is images, each with all of its questions, so that a CNN runs once per image.

B images, N objects in each, T points, Q questions about it, R roles of a point in a question, S steps of a question, D
numbers or L words in it, C channels, H x W pixels.
"""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np
import torch
import torch.utils.data
from torch import Tensor

from bcn.data.random import permutation
from bcn.data.vqa.vocabulary import Vocabulary
from bcn.errors import BcnError, printable

IGNORE_INDEX = -100
"""in place of an answer that is not known, and of padding: neither the loss nor a count sees the question"""
OUT_OF_VOCABULARY = -1
"""in place of an answer that is none of the data set's `answers`: the loss ignores it, and a count calls it wrong"""
MAX_NAME = 200
"""characters of an answer, of a kind of question and of a word"""
MAX_NAMES = 100_000
"""answers, kinds and words of a data set"""


def check_name(name: str) -> str:
    """An answer, a kind or a word that fits a line; ValueError says what is wrong with another.

    What a data set may name, a weights file may: weights that were trained can be loaded.
    """
    if not 0 < len(name) <= MAX_NAME:
        raise ValueError(f"has {len(name):,} characters: accepted are 1 to {MAX_NAME}")
    if printable(name) != name or len(name.splitlines()) > 1:
        raise ValueError("has characters that cannot be printed in a line")
    return name


class Batch(NamedTuple):
    image: Tensor
    """(B, C, H, W) uint8"""
    answer: Tensor
    """(B, Q) index of the answer, IGNORE_INDEX or OUT_OF_VOCABULARY; (B,) index of the class where nothing is asked"""
    question: Tensor | None = None
    """(B, Q, D) float; or (B, Q, L) int64, indices of words, padded with 0"""
    kind: Tensor | None = None
    """(B, Q) index of the kind of question"""
    centre: Tensor | None = None
    """(B, 2) x and y of the object's centre, in units of the image's width and height"""
    auxiliary: dict[str, Tensor] | None = None
    """targets of auxiliary supervision: "point" (B, T, 2), x and y of objects and of background points, in the same
    units, NaN where an image has fewer; "role" (B, Q, T, R), 1 for each role that a point has in a question, else 0;
    "step" (B, Q, T, S, 2), where steps were asked for, 1 for points in the first and second set of a step, else 0"""
    packed: tuple[Tensor, Tensor, Tensor] | None = None
    """questions in words as a GPU takes them, `bcn.models.question_encoder.PackedQuestions`"""
    objects: Tensor | None = None
    """(B, N, C) float, the objects of an image as vectors, for models that take them instead of pixels"""
    mask: Tensor | None = None
    """(B, N) bool, which of them are there, at least one of an image; the others are padding"""
    box: Tensor | None = None
    """(B, h, w, 4) left, top, right and bottom of the object whose centre is in each of h x w cells, in units of the
    image's width and height, where the answers are the classes of these objects, row by row; NaN where there is none"""


@dataclass(frozen=True)
class Preprocessing:
    """uint8 pixels to what a model sees: (pixel / 255 - mean) / std, channel by channel."""

    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)

    def __call__(self, image_BCHW: Tensor) -> Tensor:
        prepared_BCHW = image_BCHW.to(torch.float32, copy=True)
        if any(self.mean):
            prepared_BCHW -= _scaled(self.mean, image_BCHW.device)
        prepared_BCHW /= _scaled(self.std, image_BCHW.device)
        return prepared_BCHW


@cache
def _scaled(values: tuple[float, ...], device: torch.device) -> Tensor:
    """255 times the value of each channel, (C, 1, 1); kept, because sending them to a GPU means to wait for it."""
    with torch.inference_mode(False):
        return 255 * torch.tensor(values, device=device).view(-1, 1, 1)


Sample = dict[str, Any]
"""an image, its questions and their answers: the parts of a Batch that there are, without their first dimension"""


class Dataset(torch.utils.data.Dataset[Sample]):
    """A data set: `dataset[3]` is a sample, `dataset[[3, 1, 4]]` a Batch of three images, as training reads them.

    A DataLoader of torch takes it as it is. Training knows no data set by name: what one of them has and others lack,
    it says here.
    """

    name: str
    """with its version: "sort-of-clevr-v1" """
    split: str
    preprocessing: Preprocessing
    answers: tuple[str, ...]
    """the names of the answers or classes, in the order of their indices"""
    kinds: tuple[str, ...]
    """the names of the kinds of questions; empty where nothing is asked"""
    vocabulary: Vocabulary | None = None
    """the words of its questions; None where questions are not in words"""
    augments: bool = False
    """whether `augment` changes a batch"""
    reads_ahead: bool = False
    """whether other processes make its batches, so that reading one ahead of the step gains time on a CPU too"""
    dense: bool = False
    """whether every pixel has an answer, so that metrics have the mean intersection over union"""

    @property
    def question_groups(self) -> Mapping[str, slice]:
        """Groups of kinds whose accuracy is reported too: name and slice of `kinds`."""
        return {}

    @property
    def has_answers(self) -> bool:
        """Whether the answer to any of its questions is known."""
        return True

    def __len__(self) -> int:
        raise NotImplementedError

    def batch(self, index: Sequence[int] | np.ndarray) -> Batch:
        """These images with all of their questions, padded."""
        raise NotImplementedError

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: Sequence[int] | np.ndarray) -> Batch: ...
    def __getitem__(self, index: int | Sequence[int] | np.ndarray) -> Sample | Batch:
        if isinstance(index, Sequence) or (isinstance(index, np.ndarray) and index.ndim):
            return self.batch(index)
        number = operator.index(index)
        if not -len(self) <= number < len(self):
            raise IndexError(f"index {number}: {self.name} {self.split} has {len(self)} images")
        return self.__getitems__([number % len(self)])[0]

    def __getitems__(self, index: list[int]) -> list[Sample]:
        """Samples that are padded alike, so that a DataLoader can stack them."""
        parts = {name: part for name, part in self.batch(index)._asdict().items() if part is not None}
        return [{name: _take(part, row) for name, part in parts.items()} for row in range(len(index))]

    def order(self, epoch: int, *, seed: int) -> np.ndarray:
        """The indices of one epoch, a permutation by seed and epoch; for a stream, the next fresh indices."""
        return permutation(len(self), seed=seed, epoch=epoch)

    def augment(self, batch: Batch, generator: torch.Generator) -> Batch:
        """A batch of training images, augmented; the batch itself where the data set has no augmentation."""
        return batch

    def allow_mirroring(self) -> "Dataset":
        """The same data set, whose augmentation mirrors images and exchanges left and right."""
        raise BcnError(f"{self.name} has no questions in words whose left and right could be exchanged: mirror=false")

    def curriculum(self, batch: Batch) -> Batch | None:
        """The batch with its easy questions alone, to begin training with; None where there is no curriculum."""
        return None

    def to_sentence(self, question_D: Tensor) -> str:
        """A question in words."""
        assert self.vocabulary is not None, f"{self.name} asks nothing in words"
        return " ".join(self.vocabulary.decode(question_D.tolist())) + "?"

    def object_supervision(self, grid: tuple[int, int]) -> "Dataset | None":
        """Auxiliary supervision: questions about the objects in its images; None where scenes are not annotated.

        Args:
            grid: rows and columns of the cells that are asked about.
        """
        return None

    def referent_supervision(self, *, steps: int = 0) -> "Dataset | None":
        """The same data set with the targets of `Batch.auxiliary`; None where scenes are not annotated.

        Args:
            steps: of a question's chain of relations that are targets too, the first ones.
        """
        return None

    def load_embeddings(self, data: Path | None) -> Tensor | None:
        """Pre-trained embeddings of the vocabulary (words, numbers), NaN where a word has none.

        Args:
            data: where their files lie, BCN_DATA by default.
        """
        return None

    def on_device(self, device: torch.device, limit: int) -> "Dataset":
        """The same data set, with its images on a device if they take at most `limit` bytes there."""
        return self

    def checksum(self) -> str:
        """SHA-256 of everything that this split gives."""
        raise NotImplementedError


def _take(part: Any, row: int) -> Any:
    return {name: tensor[row] for name, tensor in part.items()} if isinstance(part, dict) else part[row]
