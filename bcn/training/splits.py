"""The splits that a recipe trains, validates and tests on."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bcn.data.clevr_like.pointing import open_pointing
from bcn.data.clevr_like.sight import SightDataset, open_sight
from bcn.data.dataset import Dataset
from bcn.data.registry import open_dataset
from bcn.data.sort_of_clevr.questions import KINDS
from bcn.data.vqa.dataset import QuestionDataset
from bcn.data.vqa.embeddings import NUMBERS, load_glove
from bcn.data.vqa.sources import find_source
from bcn.data.vqa.vocabulary import SPECIAL
from bcn.errors import BcnError
from bcn.models.clevr import grid
from bcn.models.registry import image_shape
from bcn.training.progress import say
from bcn.training.recipe import Recipe


def open_for(
    model: str,
    name: str,
    split: str,
    *,
    words: Sequence[str] | None = None,
    answers: Sequence[str] | None = None,
    **how: Any,
) -> Dataset:
    """A split as `open_dataset` opens it; one's own images, which may have any size, at that of the model.

    With the words and answers of a trained model, questions are read in these, whatever the data set's own are.
    """
    size = image_shape(model)[1] if name == "own" else None
    return open_dataset(name, split, size=size, words=words, answers=answers, **how)


class Sets(NamedTuple):
    train: Dataset
    val: Dataset | None
    test: Dataset
    tests: dict[str, Dataset]
    vectors: Tensor | None = None
    """what the vectors of words start from, NaN where at random"""
    sight: SightDataset | None = None
    """what the CNN alone is trained on at first"""

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
        vectors = _vectors(train, root) if recipe.word_embeddings == "glove" else None
        train, seen = taught(recipe, train, root)
        return cls(train, val, test, tests, vectors, seen)

    def complete(self, recipe: Recipe) -> Recipe:
        """The recipe with what its model takes from the data: how many words there are, and answers."""
        if not isinstance(self.train, QuestionDataset):
            return recipe
        counted = {"vocab_size": len(self.train.vocabulary), "num_answers": len(self.train.answers)}
        for name, value in recipe.arguments:
            if counted.get(name, value) != value:
                raise BcnError(f"{self.train.name} has {name}={counted[name]}, not {value}: leave arguments.{name} out")
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
        if recipe.curriculum_epochs and self.train.kinds != KINDS:
            raise BcnError(
                f"{self.train.name} does not ask non-relational questions apart from others; "
                "train with curriculum_epochs=0"
            )

    def checksums(self) -> dict[str, str]:
        named = {"train": self.train, "val": self.val, "test": self.test, **self.tests, "objects": self.sight}
        checksums = {name: dataset.checksum() for name, dataset in named.items() if dataset is not None}
        if isinstance(self.train, QuestionDataset) and self.train.name == "own":
            texts = json.dumps([self.train.vocabulary.words, self.train.answers, self.train.kinds])
            checksums["texts"] = hashlib.sha256(texts.encode()).hexdigest()
        return checksums


def taught(recipe: Recipe, train: Dataset, root: Path | None) -> tuple[Dataset, SightDataset | None]:
    """The training split with what scenes tell that its questions mean, and what they tell of its images."""
    auxiliary = recipe.auxiliary
    if auxiliary is None or not auxiliary.epochs:
        return train, None
    if not isinstance(train, QuestionDataset):
        raise BcnError(f"{train.name} has no scenes to be taught by: train with auxiliary=none")
    place = find_source(recipe.data.name, root)[0]
    seen = open_sight(place, train, grid(recipe.model)) if auxiliary.object_epochs else None
    return open_pointing(place, train) if auxiliary.referent_epochs else train, seen


def _vectors(dataset: Dataset, root: Path | None) -> Tensor:
    """GloVe's vectors of the words of a data set; those that have none are named."""
    if not isinstance(dataset, QuestionDataset):
        raise BcnError(f"{dataset.name} asks nothing in words: word_embeddings=glove is for data sets that do")
    words = dataset.vocabulary.words
    special, found = torch.full((SPECIAL, NUMBERS), torch.nan), torch.from_numpy(load_glove(words, data=root))
    if missing := [word for word, vector in zip(words, found, strict=True) if vector.isnan().any()]:
        say(f"GloVe has no vector for {', '.join(missing)}: they start at random")
    return torch.cat([special, found])
