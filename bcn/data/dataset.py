"""The Dataset protocol. A batch is images, each with all of its questions, so that a CNN runs once per image.

B images, T points in each, Q questions about it, R roles of a point in a question, D numbers or L words in a question,
C channels, H x W pixels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from bcn.data.random import permutation
from bcn.data.vqa.vocabulary import Vocabulary

IGNORE_INDEX = -100
"""in place of an answer that is not known, and of padding: neither the loss nor a count sees the question"""
OUT_OF_VOCABULARY = -1
"""in place of an answer that is none of the data set's `answers`: the loss ignores it, and a count calls it wrong"""


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
    units, NaN where an image has fewer; "role" (B, Q, T, R), 1 for each role that a point has in a question, else 0"""
    packed: tuple[Tensor, Tensor, Tensor] | None = None
    """questions in words as a GPU takes them, `bcn.models.question_encoder.PackedQuestions`"""


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


class Dataset(Protocol):
    """A data set, read by arrays of indices: `dataset[np.array([3, 1, 4])]` is a Batch of three images.

    Training knows no data set by name: what one of them has and others lack, it says here.
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

    @property
    def question_groups(self) -> Mapping[str, slice]:
        """Groups of kinds whose accuracy is reported too: name and slice of `kinds`."""
        return {}

    @property
    def has_answers(self) -> bool:
        """Whether the answer to any of its questions is known."""
        return True

    def __len__(self) -> int: ...

    def __getitem__(self, index: Sequence[int] | np.ndarray) -> Batch: ...

    def order(self, epoch: int, *, seed: int) -> np.ndarray:
        """The indices of one epoch, a permutation by seed and epoch; for a stream, the next fresh indices."""
        return permutation(len(self), seed=seed, epoch=epoch)

    def augment(self, batch: Batch, generator: torch.Generator) -> Batch:
        """A batch of training images, augmented; the batch itself where the data set has no augmentation."""
        return batch

    def curriculum(self, batch: Batch) -> Batch | None:
        """The batch with its easy questions alone, to begin training with; None where there is no curriculum."""
        return None

    def object_supervision(self, grid: tuple[int, int]) -> "Dataset | None":
        """Auxiliary supervision: questions about the objects in its images; None where scenes are not annotated.

        Args:
            grid: rows and columns of the cells that are asked about.
        """
        return None

    def referent_supervision(self) -> "Dataset | None":
        """The same data set with the targets of `Batch.auxiliary`; None where scenes are not annotated."""
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
        ...
