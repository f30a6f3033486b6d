"""The data sets: images, questions and answers of one of the versions, kept in memory or made as they are asked for."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from bcn.data.dataset import Batch
from bcn.data.sort_of_clevr.generated import SPLITS, FreshSamples, GeneratedSplit, check_arguments
from bcn.data.sort_of_clevr.questions import ANSWERS, KINDS, question_bits
from bcn.data.sort_of_clevr.samples import Questions, SampleGenerator
from bcn.data.sort_of_clevr.scene import COLOURS, Scenes
from bcn.data.sort_of_clevr.sentences import to_sentence
from bcn.data.sort_of_clevr.symmetry import transform

V1, LEGACY, STREAM = "sort-of-clevr-v1", "sort-of-clevr-legacy", "sort-of-clevr-stream"
VERSIONS = (V1, LEGACY, STREAM)
SIZES = {V1: (9800, 1000, 5000), LEGACY: (9800, 1000, 200), STREAM: (9800, 1000, 5000)}
STREAMS = {V1: (0, 1, 2), LEGACY: (4, 5, 6), STREAM: (3, 1, 2)}
"""the number of each split's stream of samples; a fresh stream is validated and tested on the images of v1"""

FEWER_OBJECTS = {objects: f"{V1}-{objects}-objects" for objects in (2, 3, 4, 5)}
"""what v1 with fewer objects is called"""


class SortOfClevr(GeneratedSplit):
    """`images` samples of a split, drawn once and kept; `SortOfClevrStream` is the set that is never the same twice."""

    answers: tuple[str, ...] = ANSWERS
    kinds: tuple[str, ...] = KINDS
    question_groups: ClassVar[dict[str, slice]] = {"non_relational": slice(0, 3), "relational": slice(3, 6)}
    question_bits = question_bits()
    kind_of_number = np.arange(36) // len(COLOURS)

    def __init__(self, name: str, split: str, images: int, generator: SampleGenerator) -> None:
        self.generator = generator
        self.augments = not generator.legacy  # legacy scenes have objects on the middle line
        super().__init__(name, split, images, generator)

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

    def to_sentence(self, question_D: Tensor) -> str:
        return to_sentence(question_D)

    def scenes(self, index: Sequence[int] | np.ndarray) -> Scenes:
        """The scenes of these samples as data: positions, shapes, which colours are present."""
        return self.generator.scenes(index)


class SortOfClevrStream(FreshSamples, SortOfClevr):
    """Fresh images without end: any index may be asked for, and `images` is only how many make an epoch."""


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
    check_arguments(version, VERSIONS, split, 1 if images is None else images, seed, questions)
    images = SIZES[version][SPLITS.index(split)] if images is None else images
    number = STREAMS[version][SPLITS.index(split)]
    generator = SampleGenerator(seed, number, legacy=version == LEGACY, objects=objects, questions=questions)
    if version == STREAM and split == "train":
        return SortOfClevrStream(STREAM, split, images, generator)
    name = V1 if version == STREAM else version
    return SortOfClevr(name if objects == 6 else FEWER_OBJECTS[objects], split, images, generator)
