"""clevr-like-v2-stream: scenes that never repeat, rendered by worker processes while a model trains.

A sample is a function of the seed and of its index, whoever renders it: the number of workers changes nothing, and a
run that resumes sees what it would have seen. Validation and test are those of clevr-like-v2.

B images of a batch, Q questions about each, L words of a question, T most objects of an image.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bcn.data.clevr_like import supervision
from bcn.data.clevr_like.phrasing import WORDS
from bcn.data.clevr_like.renderer import Renderer, StreamSample, usable_workers
from bcn.data.clevr_like.rules import CLEVR_RULES
from bcn.data.clevr_like.supervision import (
    label_objects,
    label_points,
    open_annotated,
    referent_bits,
    with_referents,
)
from bcn.data.dataset import Batch, Dataset
from bcn.data.places import ask_about_objects
from bcn.data.random import fresh_indices
from bcn.data.vqa.clevr import ANSWERS, CLEVR_LIKE_V2, KINDS, kind_of
from bcn.data.vqa.dataset import QuestionDataset
from bcn.data.vqa.vocabulary import PADDING, Vocabulary
from bcn.errors import BcnError

CLEVR_STREAM = f"{CLEVR_LIKE_V2}-stream"
IMAGES = 20_000
"""of an epoch"""
MOST = CLEVR_RULES.objects[1]
"""objects of a scene"""
CHECKED = 4
"""samples that a checksum is made of: every sample follows from its index"""


@dataclass(eq=False, kw_only=True)
class ClevrStream(QuestionDataset):
    """Fresh images without end: any index may be asked for, and `images` is only how many make an epoch."""

    images: int
    renderer: Renderer
    reads_ahead = True

    @property
    def has_answers(self) -> bool:
        return True

    def __len__(self) -> int:
        return self.images

    def batch(self, index: Sequence[int] | np.ndarray) -> Batch:
        samples = self._make(index)
        return self.encode(samples).batch(np.arange(len(samples)))

    def _make(self, index: Sequence[int] | np.ndarray) -> list[StreamSample]:
        if (lowest := min(int(number) for number in index)) < 0:
            raise BcnError(f"index {lowest}: a stream is indexed from 0 on")
        return self.renderer(index)

    def encode(self, samples: Sequence[StreamSample]) -> QuestionDataset:
        """These samples alone, as a data set of as many images."""
        questions = [question for sample in samples for question in sample.questions]
        counts = np.array([len(sample.questions) for sample in samples])
        words = [self.vocabulary.encode(question["question"]) for question in questions]
        question_TL = np.full((len(words), max(map(len, words), default=1)), PADDING, np.int64)
        for row, numbers in enumerate(words):
            question_TL[row, : len(numbers)] = numbers
        index = {answer: number for number, answer in enumerate(self.answers)}
        return QuestionDataset(
            name=self.name,
            split=self.split,
            vocabulary=self.vocabulary,
            answers=self.answers,
            kinds=self.kinds,
            image=np.stack([sample.image for sample in samples]),
            question=question_TL,
            answer=np.array([index[question["answer"]] for question in questions], np.int64),
            kind=np.array([KINDS.index(kind_of(question["program"])) for question in questions], np.int64),
            question_index=np.array([question["question_index"] for question in questions], np.int64),
            position=np.arange(len(questions)),
            rows=np.stack([np.arange(len(samples)), counts.cumsum() - counts, counts], axis=1),
        )

    def order(self, epoch: int, *, seed: int) -> np.ndarray:
        return fresh_indices(self.images, seed=seed, epoch=epoch)

    def first(self, images: int) -> "ClevrStream":
        raise BcnError(f"{self.name} has no first {images} images: open it with images={images}")

    def on_device(self, device: torch.device, limit: int) -> "ClevrStream":
        return self

    def object_supervision(self, grid: tuple[int, int]) -> "ObjectStream":
        return ObjectStream(self, grid)

    def referent_supervision(self, *, steps: int = 0) -> "ReferentStream":
        return ReferentStream(**self.__dict__, steps=steps)

    def checksum(self) -> str:
        digest = hashlib.sha256(f"{self.name} {self.images}".encode())
        for tensor in self[np.arange(CHECKED)]:
            if isinstance(tensor, torch.Tensor):
                digest.update(tensor.numpy().tobytes())
        return digest.hexdigest()


@dataclass(eq=False, kw_only=True)
class ReferentStream(ClevrStream):
    """The stream, with the targets of referent supervision in `Batch.auxiliary`."""

    steps: int

    def batch(self, index: Sequence[int] | np.ndarray) -> Batch:
        samples = self._make(index)
        labels = [label_points(scene, scene["image_index"], MOST) for scene, _, _ in samples]
        bits = [
            referent_bits(question["program"], scene, self.steps) for scene, asked, _ in samples for question in asked
        ]
        point_BT2, value_BT4 = (np.stack(part) for part in zip(*labels, strict=True))
        dataset = with_referents(self.encode(samples), point_BT2, value_BT4, np.array(bits, np.uint16))
        return dataset.batch(np.arange(len(samples)))


class ObjectStream(Dataset):
    """Questions about the places and attributes of objects in the images of the stream."""

    reads_ahead = True
    answers, kinds = supervision.ANSWERS, supervision.KINDS

    def __init__(self, base: ClevrStream, grid: tuple[int, int]) -> None:
        self.base, self.grid = base, grid
        self.name, self.split, self.preprocessing = base.name, "objects", base.preprocessing

    def __len__(self) -> int:
        return len(self.base)

    def batch(self, index: Sequence[int] | np.ndarray) -> Batch:
        samples = self.base._make(index)
        centre_BT2, value_BT6 = label_objects([sample.scene for sample in samples], MOST, self.grid)
        image_BCHW = torch.from_numpy(np.stack([sample.image for sample in samples]))
        return ask_about_objects(image_BCHW, centre_BT2, value_BT6, np.asarray(index, np.int64), self.grid)

    def order(self, epoch: int, *, seed: int) -> np.ndarray:
        return self.base.order(epoch, seed=seed)

    def checksum(self) -> str:
        """That of the stream: its scenes decide everything."""
        return self.base.checksum()


def make_clevr_stream(
    *,
    images: int = IMAGES,
    seed: int = 0,
    size: int = 128,
    workers: int = 0,
    words: Sequence[str] = tuple(sorted(WORDS)),
    answers: Sequence[str] = ANSWERS,
) -> ClevrStream:
    """A stream of images with ten questions each, in CLEVR's words.

    A DataLoader renders in its workers: `DataLoader(stream, 32, sampler=stream.order(epoch, seed=0), num_workers=2)`.

    Args:
        images: of an epoch.
        seed: decides, with its index, every sample.
        size: width and height.
        workers: processes of its own that render; a DataLoader needs none.
        words: the vocabulary of a trained model.
        answers: those of a trained model.
    """
    if images < 1:
        raise BcnError(f"images={images}: an epoch has at least one image")
    if not 0 <= seed < 1 << 64:
        raise BcnError(f"seed={seed}: a seed is a number from 0 to 2**64 - 1")
    if missing := set(ANSWERS) - set(answers):
        raise BcnError(f"the answers lack {', '.join(sorted(missing))}, which the questions of {CLEVR_STREAM} have")
    nothing = np.zeros(0, np.int64)
    return ClevrStream(
        name=CLEVR_STREAM,
        split="train",
        vocabulary=Vocabulary(tuple(words)),
        answers=tuple(answers),
        kinds=KINDS,
        image=np.zeros((0, 3, size, size), np.uint8),
        question=np.zeros((0, 1), np.int64),
        answer=nothing,
        kind=nothing,
        question_index=nothing,
        position=nothing,
        rows=np.zeros((0, 3), np.int64),
        images=images,
        renderer=Renderer(seed=seed, size=size, workers=workers),
    )


def open_stream(
    split: str,
    *,
    data: str | Path | None = None,
    images: int | None = None,
    words: Sequence[str] | None = None,
    answers: Sequence[str] | None = None,
) -> QuestionDataset:
    """The stream to train on, with as many workers as there are cores; other splits are those of clevr-like-v2."""
    known: dict[str, Any] = {
        "words": words or sorted(WORDS), "answers": answers or ANSWERS,
    }  # fmt: skip
    if split == "train":
        return make_clevr_stream(images=images or IMAGES, workers=usable_workers(), **known)
    return open_annotated(CLEVR_LIKE_V2, split, data=data, images=images, **known)
