"""The data sets of v2: images, questions and answers, kept in memory or made as they are asked for."""

from collections.abc import Sequence
from copy import copy
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from bcn.data.dataset import IGNORE_INDEX, Batch
from bcn.data.places import PlaceDataset
from bcn.data.sort_of_clevr.generated import FreshSamples, GeneratedSplit
from bcn.data.sort_of_clevr.symmetry import transform
from bcn.data.sort_of_clevr_v2.questions import ANSWERS, GROUPS, KINDS, SUBTYPE, kinds_of_numbers, question_bits
from bcn.data.sort_of_clevr_v2.samples import SampleGenerator
from bcn.data.sort_of_clevr_v2.sampling import PER_KIND
from bcn.data.sort_of_clevr_v2.scene import Scenes
from bcn.data.sort_of_clevr_v2.sentences import to_sentence
from bcn.data.sort_of_clevr_v2.supervision import OBJECT_ANSWERS, OBJECT_KINDS, label_objects, label_referents


class SortOfClevrV2(GeneratedSplit):
    """`images` samples of a split, kept; `SortOfClevrV2Stream` is the set that is never the same twice."""

    answers: tuple[str, ...] = ANSWERS
    kinds: tuple[str, ...] = KINDS
    question_groups: ClassVar[dict[str, slice]] = GROUPS
    question_bits = question_bits()
    kind_of_number = kinds_of_numbers()
    augments = True
    steps: int | None = None
    """of referent supervision; None without it"""

    def __init__(self, name: str, split: str, images: int, generator: SampleGenerator) -> None:
        self.generator = generator
        super().__init__(name, split, images, generator)

    def batch(self, index: Sequence[int] | np.ndarray) -> Batch:
        batch = super().batch(index)
        if self.steps is None:
            return batch
        return batch._replace(auxiliary=label_referents(self.scenes(index), batch, self.steps))

    def referent_supervision(self, *, steps: int = 0) -> Self | None:
        """With the targets of `Batch.auxiliary`, and without augmentation, which would not turn them with the image."""
        supervised = copy(self)
        supervised.steps, supervised.augments = steps, False
        return supervised

    def object_supervision(self, grid: tuple[int, int]) -> PlaceDataset | None:
        return PlaceDataset(self, grid, OBJECT_KINDS, OBJECT_ANSWERS)

    def label_objects(self, index: np.ndarray, grid: tuple[int, int]) -> tuple[Tensor, np.ndarray, np.ndarray]:
        return torch.as_tensor(self._read(index).image), *label_objects(self.scenes(index), grid)

    def augment(self, batch: Batch, generator: torch.Generator) -> Batch:
        """Each image mirrored and turned at random, its questions and answers with it."""
        return transform(batch, torch.randint(8, (len(batch.image),), generator=generator), kind_bits=SUBTYPE)

    def curriculum(self, batch: Batch) -> Batch:
        """The unary questions, which come first."""
        assert batch.question is not None
        assert batch.kind is not None
        width = 3 * (PER_KIND if self.generator.questions == "sampled" else self.generator.objects[1])
        answer, question, kind = (part[:, :width] for part in (batch.answer, batch.question, batch.kind))
        return batch._replace(answer=answer.masked_fill(kind >= 3, IGNORE_INDEX), question=question, kind=kind)

    def to_sentence(self, question_D: Tensor) -> str:
        return to_sentence(question_D)

    def scenes(self, index: Sequence[int] | np.ndarray) -> Scenes:
        """The scenes of these samples as data: positions, shapes, colours, which objects are present."""
        return self.generator.scenes(index)


class SortOfClevrV2Stream(FreshSamples, SortOfClevrV2):
    """Fresh images without end: any index may be asked for, and `images` is only how many make an epoch."""
