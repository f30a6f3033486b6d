"""Images with questions in words, as a Dataset.

A row of the data set is an image with up to ten of its questions; an image with more has several rows. A batch is
padded with PADDING to its longest question, and with questions of nothing but PADDING to the most questions of a row;
the answer to these is IGNORE_INDEX, as it is to questions of a test split without answers. An answer that the training
split never gives is OUT_OF_VOCABULARY, and counts as wrong.

T questions, N images, B rows of a batch, Q questions of a row, L words of a question, C x S x S pixels.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from bcn.data.dataset import IGNORE_INDEX, Batch, Dataset, Preprocessing
from bcn.data.device_images import Images, images_on_device, take_images
from bcn.data.images import random_crop, random_zoom, repeat_edges
from bcn.data.vqa.clevr import FAMILIES, KINDS
from bcn.data.vqa.embeddings import load_glove
from bcn.data.vqa.vocabulary import NUM_SPECIAL, PADDING, Vocabulary
from bcn.errors import BcnError

MAX_QUESTIONS = 10
"""of a row"""
CLEVR_PREPROCESSING = Preprocessing(mean=(0.464, 0.462, 0.455), std=(0.096, 0.092, 0.098))
"""mean and standard deviation of original images; those of clevr-like-v1 are the same to a hundredth"""


@dataclass(eq=False)
class QuestionDataset(Dataset):
    """What `Dataset` asks for, over images with questions in words."""

    name: str
    split: str
    vocabulary: Vocabulary = field()  # without the protocol's default
    answers: tuple[str, ...]
    kinds: tuple[str, ...]
    image: Images
    """(N, 3, S, S) uint8, memory-mapped"""
    question: np.ndarray
    """(T, L) indices of words; the questions of an image follow each other"""
    answer: np.ndarray
    """(T,) index in `answers`, IGNORE_INDEX or OUT_OF_VOCABULARY"""
    kind: np.ndarray
    """(T,) index in `kinds`"""
    question_index: np.ndarray
    """(T,) CLEVR's number of the question, for submissions"""
    position: np.ndarray
    """(T,) of the question in its file"""
    rows: np.ndarray
    """(rows, 3): index of the image, index of its first question, number of questions"""
    files: tuple[str, ...] = ()
    """(N,) names of the image files, if there are any"""
    preprocessing: Preprocessing = CLEVR_PREPROCESSING
    augments = True
    zoom: float = 0.0
    """by how much augmentation makes an image smaller at most, see `random_zoom`"""
    mirror: bool = False
    """whether augmentation mirrors images whose questions are not CLEVR's"""

    @property
    def question_groups(self) -> dict[str, slice]:
        """CLEVR's five families of questions."""
        if self.kinds != KINDS:
            return {}
        return {family: slice(KINDS.index(kinds[0]), KINDS.index(kinds[-1]) + 1) for family, kinds in FAMILIES.items()}

    @property
    def has_answers(self) -> bool:
        return bool((self.answer >= 0).any())

    def load_embeddings(self, data: Path | None) -> Tensor:
        return torch.from_numpy(load_glove(self.vocabulary.words, data=data))

    def __len__(self) -> int:
        return len(self.rows)

    def batch(self, index: Sequence[int] | np.ndarray) -> Batch:
        rows = self.rows[np.asarray(index, np.intp)]
        index_BQ, asked_BQ = self._questions(rows)
        question_BQL = np.where(asked_BQ[..., None], self.question[index_BQ], PADDING)
        longest = int((question_BQL != PADDING).sum(-1).max())
        return Batch(
            image=take_images(self.image, rows[:, 0]),
            answer=torch.from_numpy(np.where(asked_BQ, self.answer[index_BQ], IGNORE_INDEX)),
            question=torch.from_numpy(question_BQL[..., : max(longest, 1)].astype(np.int64)),
            kind=torch.from_numpy(np.where(asked_BQ, self.kind[index_BQ], 0)) if self.kinds else None,
        )

    def _questions(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The indices of the questions of some rows, 0 for padding; and a mask that is false for padding."""
        index_BQ = rows[:, 1:2] + np.arange(rows[:, 2].max())
        asked_BQ = index_BQ < rows[:, 1:2] + rows[:, 2:]
        return np.where(asked_BQ, index_BQ, 0), asked_BQ

    def first(self, images: int) -> "QuestionDataset":
        """The first `images` only."""
        if not 1 <= images <= len(self.image):
            raise BcnError(f"{images} images were asked of {self.name} {self.split}: give 1 to {len(self.image)}")
        return replace(self, image=self.image[:images], rows=self.rows[self.rows[:, 0] < images])

    def on_device(self, device: torch.device, limit: int) -> "QuestionDataset":
        return replace(self, image=images_on_device(self.image, device, limit))

    def allow_mirroring(self) -> "QuestionDataset":
        if not {"left", "right"} <= set(self.vocabulary.words):
            raise BcnError(f"no question of {self.name} has the words left and right: train with mirror=false")
        return replace(self, mirror=True)

    def questions(self, row: int) -> range:
        """The questions of a row, as indices of `question`, `answer` and so on."""
        _, start, count = self.rows[row].tolist()
        return range(start, start + count)

    def augment(self, batch: Batch, generator: torch.Generator) -> Batch:
        """Translate each image by up to a 16th of its size, its edge repeated, after making it smaller by `zoom`.

        With CLEVR's questions, or where `mirror` allows it, mirror half of the images, and swap "left" and "right" in
        the questions about them and in the answers.
        """
        padding, words = batch.image.shape[2] // 16, self.vocabulary.words
        image_BCHW = random_zoom(batch.image, self.zoom, generator) if self.zoom else batch.image
        moved_BCHW, by_B2 = random_crop(repeat_edges(image_BCHW, padding), padding, generator)
        auxiliary = batch.auxiliary
        if auxiliary is not None:
            auxiliary = auxiliary | {"point": auxiliary["point"] + by_B2[:, None] / batch.image.shape[2]}
        batch = batch._replace(image=moved_BCHW, auxiliary=auxiliary)
        if not (self.kinds == KINDS or self.mirror) or not {"left", "right"} <= set(words):
            return batch
        assert batch.question is not None
        left, right = (words.index(side) + NUM_SPECIAL for side in ("left", "right"))
        mirrored_B11 = torch.randint(2, (len(moved_BCHW), 1, 1), generator=generator).bool()
        swapped_BQL = batch.question.where(batch.question != left, right).where(batch.question != right, left)
        if auxiliary is not None:
            x_BT, y_BT = auxiliary["point"].unbind(-1)
            point_BT2 = torch.stack([x_BT.where(~mirrored_B11[..., 0], 1 - x_BT), y_BT], dim=-1)
            auxiliary = auxiliary | {"point": point_BT2}
        answer_BQ = batch.answer
        if {"left", "right"} <= set(self.answers):
            left, right = (self.answers.index(side) for side in ("left", "right"))
            swapped_BQ = answer_BQ.where(answer_BQ != left, right).where(answer_BQ != right, left)
            answer_BQ = swapped_BQ.where(mirrored_B11[..., 0], answer_BQ)
        on_image_B111 = mirrored_B11[..., None].to(moved_BCHW.device, non_blocking=True)
        return batch._replace(
            image=moved_BCHW.flip(3).where(on_image_B111, moved_BCHW),
            question=swapped_BQL.where(mirrored_B11, batch.question),
            answer=answer_BQ,
            auxiliary=auxiliary,
        )

    def checksum(self) -> str:
        digest = hashlib.sha256()
        for row in range(0, len(self), 256):
            batch = self[np.arange(row, min(row + 256, len(self)))]
            for tensor in (batch.image, batch.question, batch.answer, batch.kind):
                if tensor is not None:
                    digest.update(tensor.numpy().tobytes())
        return digest.hexdigest()
