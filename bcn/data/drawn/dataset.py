"""The data set drawn-v1: training on fresh scenes without end, validation and test on fixed ones.

Object supervision asks about places (`bcn.data.places`), and what is there. Referent supervision labels a scene's
things. A question has up to three sets of them: those that it names first, those that it compares them with, and the
targets, which it counts, looks for or describes. "What colour is the thing closest to the star?" names the star; the
target is its neighbour, of which the colour is asked. The first step of a question is what it names, the others are its
targets.

B images of a batch, Q questions about each, L words of a question, T points of an image, R roles, S steps.
"""

import hashlib
import json
from collections.abc import Sequence
from copy import copy
from functools import cache
from itertools import product
from math import dist
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from bcn.data.dataset import IGNORE_INDEX, OUT_OF_VOCABULARY, Batch, Dataset
from bcn.data.drawn import objects
from bcn.data.drawn.drawing import draw
from bcn.data.drawn.questions import ANSWERS, GROUPS, KINDS, Asker, Question
from bcn.data.drawn.scene import COLOURS, LETTERS, MOST, SHAPES, Scene, make_scene
from bcn.data.drawn.wording import all_words
from bcn.data.places import PlaceDataset
from bcn.data.random import RandomStream, fresh_indices
from bcn.data.vqa.dataset import CLEVR_PREPROCESSING
from bcn.data.vqa.vocabulary import PADDING, Vocabulary
from bcn.errors import BcnError, did_you_mean

NAME = "drawn-v1"
IMAGES = {"train": 10_000, "val": 1_000, "test": 2_000}
"""of training, how many make an epoch"""
QUESTIONS = 10
"""about an image"""
SIZE = 128
"""width and height, to which every canvas is resized, as images of one's own are"""
ROLES = 64
"""first, second and target of a question; then, of a target whose attribute is asked for, each value; some are free"""
VALUES = (*COLOURS, *SHAPES, *LETTERS)
GRID = (0.1, 0.3, 0.5, 0.7, 0.9)
"""x and y of the points of which one stands for the ground"""


class Sample(NamedTuple):
    scene: Scene
    image: np.ndarray
    """(3, 128, 128) uint8"""
    questions: list[Question]


class Drawn(Dataset):
    """Drawn shapes and letters with up to ten questions in words about each image.

    >>> Drawn("test", images=3)[[0, 1]].image.shape
    torch.Size([2, 3, 128, 128])
    """

    name = NAME
    kinds = KINDS
    question_groups: ClassVar[dict[str, slice]] = GROUPS
    preprocessing = CLEVR_PREPROCESSING
    vocabulary: Vocabulary

    def __init__(
        self,
        split: str,
        *,
        images: int | None = None,
        seed: int = 0,
        words: Sequence[str] | None = None,
        answers: Sequence[str] | None = None,
    ) -> None:
        self.split, self.seed = split, seed
        self.steps: int | None = None
        self.images = IMAGES[split] if images is None else images
        self.vocabulary = all_words() if words is None else Vocabulary(tuple(words))
        self.answers = ANSWERS if answers is None else tuple(answers)
        self._answer_index = {answer: index for index, answer in enumerate(self.answers)}
        self._sample = self._make if split == "train" else cache(self._make)

    def __len__(self) -> int:
        return self.images

    def order(self, epoch: int, *, seed: int) -> np.ndarray:
        return fresh_indices(self.images, seed=seed, epoch=epoch)

    def scene(self, index: int) -> Scene:
        return make_scene(RandomStream(self.seed, self.split, index))

    def questions(self, index: int) -> list[Question]:
        return Asker(self.scene(index), RandomStream(self.seed, self.split, index, stream=1)).ask(QUESTIONS)

    def batch(self, index: Sequence[int] | np.ndarray) -> Batch:
        samples = self.samples(index)
        most = max(len(sample.questions) for sample in samples)
        encoded = [[self.vocabulary.encode(question.text) for question in sample.questions] for sample in samples]
        longest = max(len(words) for questions in encoded for words in questions)
        question_BQL = torch.full((len(samples), most, longest), PADDING)
        answer_BQ, kind_BQ = torch.full((len(samples), most), IGNORE_INDEX), torch.zeros(len(samples), most).long()
        for row, sample in enumerate(samples):
            for column, question in enumerate(sample.questions):
                words = encoded[row][column]
                question_BQL[row, column, : len(words)] = torch.tensor(words)
                answer_BQ[row, column] = self._answer_index.get(question.answer, OUT_OF_VOCABULARY)
                kind_BQ[row, column] = KINDS.index(question.kind)
        batch = Batch(torch.from_numpy(np.stack([s.image for s in samples])), answer_BQ, question_BQL, kind_BQ)
        return batch if self.steps is None else batch._replace(auxiliary=_targets(samples, most, self.steps))

    def referent_supervision(self, *, steps: int = 0) -> "Drawn":
        supervised = copy(self)
        supervised.steps = steps
        return supervised

    def object_supervision(self, grid: tuple[int, int]) -> PlaceDataset:
        return PlaceDataset(self, grid, objects.KINDS, objects.ANSWERS)

    def label_objects(self, index: np.ndarray, grid: tuple[int, int]) -> tuple[Tensor, np.ndarray, np.ndarray]:
        samples = self.samples(index)
        image_BCHW = torch.from_numpy(np.stack([sample.image for sample in samples]))
        return image_BCHW, *objects.label_things([sample.scene for sample in samples])

    def checksum(self) -> str:
        """SHA-256 of scenes, questions and answers; pixels may differ between versions of Pillow."""
        digest = hashlib.sha256()
        for index in range(self.images):
            things = [(*thing[:3], *(round(value, 6) for value in thing[3:])) for thing in self.scene(index).things]
            digest.update(json.dumps([things, self.questions(index)]).encode())
        return digest.hexdigest()

    def samples(self, index: Sequence[int] | np.ndarray) -> list[Sample]:
        return [self._sample(int(number)) for number in index]

    def _make(self, index: int) -> Sample:
        scene = self.scene(index)
        picture = draw(scene, RandomStream(self.seed, self.split, index, stream=2))
        pixels = np.asarray(picture.resize((SIZE, SIZE), Image.Resampling.BILINEAR))
        return Sample(scene, pixels.transpose(2, 0, 1), self.questions(index))


def make_drawn(split: str, **options: Any) -> Drawn:
    """Open a split of drawn-v1, whose images are drawn as they are asked for.

    Args:
        options: those of `Drawn`.
    """
    if split not in IMAGES:
        raise did_you_mean("split", split, tuple(IMAGES))
    if (images := options.get("images")) is not None and images < 1:
        raise BcnError(f"images={images}: a data set has at least one image")
    return Drawn(split, **options)


def _empty_point(things: list[tuple[float, float]]) -> tuple[float, float]:
    """The point of a grid that is furthest from all things."""
    return max(product(GRID, GRID), key=lambda point: min(dist(point, thing) for thing in things))


def _targets(samples: Sequence[Sample], most: int, steps: int) -> dict[str, Tensor]:
    """`Batch.auxiliary`: the centres of things and a point of the ground; roles and steps."""
    point_BT2 = np.full((len(samples), MOST + 1, 2), np.nan, np.float32)
    role_BQTR = np.zeros((len(samples), most, MOST + 1, ROLES), np.float32)
    step_BQTS2 = np.zeros((len(samples), most, MOST + 1, steps, 2), np.float32)
    for row, (scene, _, questions) in enumerate(samples):
        things = [(thing.x / scene.width, thing.y / scene.height) for thing in scene.things]
        point_BT2[row, : len(things) + 1] = [*things, _empty_point(things)]
        for column, question in enumerate(questions):
            for role, named in enumerate((question.first, question.second, question.target)):
                role_BQTR[row, column, list(named), role] = 1
            if question.answer in VALUES:
                role_BQTR[row, column, list(question.target), 3 + VALUES.index(question.answer)] = 1
            for step in range(steps):
                sets = (question.first, question.second) if step == 0 and question.first else (question.target, ())
                for which, named in enumerate(sets):
                    step_BQTS2[row, column, list(named), step, which] = 1
    targets = {"point": point_BT2, "role": role_BQTR} | ({"step": step_BQTS2} if steps else {})
    return {name: torch.from_numpy(target) for name, target in targets.items()}
