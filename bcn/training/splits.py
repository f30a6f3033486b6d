"""The splits that a recipe trains, validates and tests on, and what its model takes from them."""

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bcn.data.dataset import Dataset
from bcn.data.pairs import Pairs
from bcn.data.registry import find_entry, open_dataset
from bcn.errors import BcnError
from bcn.models.registry import image_shape
from bcn.training.auxiliary import open_supervision
from bcn.training.progress import say
from bcn.training.recipe import Recipe
from bcn.training.start import Start


def open_for(model: str, name: str, split: str, **options: Any) -> Dataset:
    """A split as `open_dataset` opens it; images that may have any size, at that of the model."""
    size = image_shape(model)[1] if "size" in find_entry(name).options else None
    return open_dataset(name, split, size=size, **options)


class Splits(NamedTuple):
    train: Dataset
    val: Dataset | None
    test: Dataset
    tests: dict[str, Dataset]
    objects: Dataset | None = None
    """questions of object supervision about the training images"""
    embeddings: Tensor | None = None
    """initial word embeddings, one row for each token; NaN where they are random"""
    start: Start | None = None
    """trained weights that the first epoch begins with"""

    @classmethod
    def open(cls, recipe: Recipe, root: Path | None, start: Start | None = None) -> "Splits":
        """Open what a recipe names.

        Args:
            root: where the original data lies, BCN_DATA by default.
            start: trained weights, whose words and answers come first.
        """
        if recipe.start != ("" if start is None else start.name):
            raise BcnError(f"{recipe.name} starts from {recipe.start or 'random weights'}: give these as start")
        data, model = recipe.data, recipe.model
        amount: dict[str, Any] = {"images": data.train, "questions": data.questions}
        train = open_for(model, data.name, data.split, data=root, **amount)
        trained: dict[str, Any] = {}
        if start is not None and train.vocabulary is not None:
            trained = start.grow(train.vocabulary.words, train.answers)
            train = open_for(model, data.name, data.split, data=root, **amount, **trained)
        val = (
            open_for(model, data.name, "val", data=root, images=data.val, **trained) if data.split == "train" else None
        )
        test = open_for(model, data.name, "test", data=root, images=data.test, **trained)
        if train.vocabulary is not None:
            trained = {"words": train.vocabulary.words, "answers": train.answers}
        tests = {name: open_for(model, name, "test", data=root, images=data.test, **trained) for name in data.tests}
        embeddings = load_embeddings(train, root) if recipe.word_embeddings == "glove" else None
        train = train.allow_mirroring() if recipe.mirror else train
        train, objects = open_supervision(recipe, train)
        if recipe.batch_of == "pairs":
            train = Pairs(train)
        return cls(train, val, test, tests, objects, embeddings, start)

    def model_arguments(self, recipe: Recipe) -> dict[str, Any]:
        """The arguments of the recipe's model, with those that the data determines: vocab_size and num_answers."""
        arguments = dict(recipe.arguments)
        if self.train.vocabulary is None:
            return arguments
        sizes = {"vocab_size": len(self.train.vocabulary), "num_answers": len(self.train.answers)}
        for name, value in sizes.items():
            if arguments.get(name, value) != value:
                raise BcnError(
                    f"{self.train.name} has {name}={value}, not {arguments[name]}: leave arguments.{name} out"
                )
        return sizes | arguments

    def check(self, recipe: Recipe) -> None:
        """Refuse what the recipe asks of the data and the data does not have."""
        for split in (self.train, self.val):
            if split is not None and not split.has_answers:
                what = "an answer" if split is self.train else "an answer that train has, to choose an epoch by"
                raise BcnError(f"no question of {split.split} has {what}: give some of them one")
        if recipe.localise and self.test[[0]].centre is None:
            raise BcnError(f"{self.train.name} has no centres to localise; train with localise=false")
        if recipe.augment and not self.train.augments:
            raise BcnError(f"{self.train.name} has no augmentation; train with augment=false")
        if recipe.curriculum_epochs and self.train.curriculum(self.train[[0]]) is None:
            raise BcnError(f"{self.train.name} has no curriculum of questions; train with curriculum_epochs=0")

    def on_device(self, device: torch.device, limit: int) -> "Splits":
        """The same with training images on a device, where they take at most so many bytes."""
        objects = self.objects and self.objects.on_device(device, limit)
        return self._replace(train=self.train.on_device(device, limit), objects=objects)

    def checksums(self) -> dict[str, str]:
        """SHA-256 of every split, and of the texts that questions and answers are numbered by."""
        named = {"train": self.train, "val": self.val, "test": self.test, **self.tests, "objects": self.objects}
        checksums = {name: dataset.checksum() for name, dataset in named.items() if dataset is not None}
        if self.train.vocabulary is not None:
            texts = json.dumps([self.train.vocabulary.words, self.train.answers, self.train.kinds])
            checksums["texts"] = hashlib.sha256(texts.encode()).hexdigest()
        return checksums


def load_embeddings(train: Dataset, root: Path | None) -> Tensor:
    """Pre-trained embeddings of every token, NaN where there is none; words without one are named."""
    embedding_WE = train.load_embeddings(root)
    if embedding_WE is None or train.vocabulary is None:
        raise BcnError(f"{train.name} has no questions in words: word_embeddings=glove is for data sets that do")
    words = train.vocabulary.words
    if missing := [word for word, row in zip(words, embedding_WE, strict=True) if row.isnan().any()]:
        say(f"GloVe has no embedding of {', '.join(missing)}: they start at random")
    special = torch.full((len(train.vocabulary) - len(words), embedding_WE.shape[1]), torch.nan)
    return torch.cat([special, embedding_WE])
