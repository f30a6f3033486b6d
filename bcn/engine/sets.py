"""The splits that a recipe trains, validates and tests on."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bcn.data.batch import Dataset
from bcn.data.clevr.format import QuestionDataset
from bcn.data.clevr.lessons import LESSONS
from bcn.data.clevr.named import REMEDIES, find_named, open_named
from bcn.data.clevr.sight import SightDataset, open_sight
from bcn.data.clevr.vocabulary import SPECIAL, Vocabulary
from bcn.data.glove import NUMBERS, load_glove
from bcn.data.registry import open_dataset
from bcn.data.sort_of_clevr.questions import KINDS
from bcn.engine.log import say
from bcn.engine.recipe import Recipe
from bcn.errors import BcnError
from bcn.models.clevr import sight
from bcn.models.registry import create_model, image_shape


def open_for(
    model: str, name: str, split: str, *, words: Sequence[str] | None = None, answers: Sequence[str] = (), **how: Any
) -> Dataset:
    """A split as `open_dataset` opens it; one's own images, which may have any size, at that of the model.

    With the words and answers of a trained model, questions are read in these, whatever the data set's own are.
    """
    size = image_shape(model)[1] if name == "own" else None
    if words is None or name not in REMEDIES:
        return open_dataset(name, split, size=size, **how)
    return open_named(name, split, size=size, vocabulary=Vocabulary(tuple(words)), answers=answers, **how)


class Sets(NamedTuple):
    train: Dataset
    val: Dataset | None
    test: Dataset
    tests: dict[str, Dataset]
    vectors: Tensor | None = None
    """what the vectors of words start from, NaN where at random"""
    sight: SightDataset | None = None
    """what the CNN alone is trained on at first"""
    lessons: tuple[Dataset, ...] = ()
    """for each epoch that has one, what is trained on instead"""

    @classmethod
    def open(cls, recipe: Recipe, root: Path | None) -> "Sets":
        data, held_out = recipe.data, recipe.data.split == "train"
        model = recipe.model
        train = open_for(model, data.name, data.split, data=root, images=data.train, questions=data.questions)
        val = open_for(model, data.name, "val", data=root, images=data.val) if held_out else None
        test = open_for(model, data.name, "test", data=root, images=data.test)
        known: dict[str, Any] = {}
        if isinstance(train, QuestionDataset):
            known = {"words": train.vocabulary.words, "answers": train.answers}
        tests = {name: open_for(model, name, "test", data=root, images=data.test, **known) for name in data.tests}
        vectors = _vectors(train, root) if recipe.vectors == "glove" else None
        lessons: list[Dataset] = []
        if recipe.lessons and not isinstance(train, QuestionDataset):
            raise BcnError(f"{train.name} asks nothing in words: train with lessons=")
        for lesson, epochs in zip(LESSONS, recipe.lessons, strict=False):
            lessons += [open_for(model, data.name, lesson, data=root, images=data.train)] * epochs if epochs else []
        seen = _sight(recipe, train, root) if recipe.sight else None
        return cls(train, val, test, tests, vectors, seen, tuple(lessons))

    def complete(self, recipe: Recipe) -> Recipe:
        """The recipe with what its model takes from the data: how many words there are, and answers."""
        if not isinstance(self.train, QuestionDataset):
            return recipe
        counted = {"words": len(self.train.vocabulary), "answers": len(self.train.answers)}
        for name, value in recipe.arguments:
            if counted.get(name, value) != value:
                raise BcnError(f"{self.train.name} has {counted[name]} {name}, not {value}: leave arguments.{name} out")
        return replace(recipe, arguments=tuple((counted | dict(recipe.arguments)).items()))

    def check(self, recipe: Recipe) -> None:
        """Refuse what the recipe asks of the data and the data does not have."""
        for split in (self.train, self.val):
            if isinstance(split, QuestionDataset) and not (split.answer >= 0).any():
                what = "an answer" if split is self.train else "an answer that train has, to choose an epoch by"
                raise BcnError(f"no question of {split.split} has {what}: give some of them one")
        if recipe.localise and self.test[[0]].centre is None:
            raise BcnError(f"{self.train.name} has no centres to localise; train with localise=false")
        if recipe.augment and (batch := self.train[[0]]) is self.train.augment(batch, torch.Generator()):
            raise BcnError(f"{self.train.name} has no augmentation; train with augment=false")
        if recipe.non_relational_first and self.train.kinds != KINDS:
            raise BcnError(
                f"{self.train.name} does not ask non-relational questions apart from others; "
                "train with non_relational_first=0"
            )
        if recipe.short_first and not isinstance(self.train, QuestionDataset):
            raise BcnError(f"{self.train.name} asks nothing in words: train with short_first=0")

    def checksums(self) -> dict[str, str]:
        named = {"train": self.train, "val": self.val, "test": self.test, **self.tests}
        named |= {lesson.split: lesson for lesson in dict.fromkeys((*self.lessons, *filter(None, [self.sight])))}
        checksums = {name: dataset.checksum() for name, dataset in named.items() if dataset is not None}
        if isinstance(self.train, QuestionDataset) and self.train.name == "own":
            texts = json.dumps([self.train.vocabulary.words, self.train.answers, self.train.kinds])
            checksums["texts"] = hashlib.sha256(texts.encode()).hexdigest()
        return checksums


def _sight(recipe: Recipe, train: Dataset, root: Path | None) -> SightDataset:
    """The images of a training split, with what is seen in each cell of the model's map."""
    if not isinstance(train, QuestionDataset):
        raise BcnError(f"{train.name} has no scenes to learn to see by: train with sight=0")
    with torch.device("meta"):
        rows, columns = (
            sight(create_model(recipe.model), 1, 1).features(torch.empty((1, *image_shape(recipe.model)))).shape[-2:]
        )
    return open_sight(find_named(recipe.data.name, root)[0], train, (rows, columns))


def _vectors(dataset: Dataset, root: Path | None) -> Tensor:
    """GloVe's vectors of the words of a data set; those that have none are named."""
    if not isinstance(dataset, QuestionDataset):
        raise BcnError(f"{dataset.name} asks nothing in words: vectors=glove is for data sets that do")
    words = dataset.vocabulary.words
    special, found = torch.full((SPECIAL, NUMBERS), torch.nan), torch.from_numpy(load_glove(words, data=root))
    if missing := [word for word, vector in zip(words, found, strict=True) if vector.isnan().any()]:
        say(f"GloVe has no vector for {', '.join(missing)}: they start at random")
    return torch.cat([special, found])
