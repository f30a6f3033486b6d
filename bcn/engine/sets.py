"""The splits that a recipe trains, validates and tests on."""

from pathlib import Path
from typing import NamedTuple

from bcn.data.batch import Dataset
from bcn.data.registry import open_dataset
from bcn.engine.recipe import Recipe


class Sets(NamedTuple):
    train: Dataset
    val: Dataset | None
    test: Dataset
    tests: dict[str, Dataset]

    @classmethod
    def open(cls, recipe: Recipe, root: Path | None) -> "Sets":
        data, held_out = recipe.data, recipe.data.split == "train"
        train = open_dataset(data.name, data.split, data=root, images=data.train, questions=data.questions)
        val = open_dataset(data.name, "val", data=root, images=data.val) if held_out else None
        test = open_dataset(data.name, "test", data=root, images=data.test)
        tests = {name: open_dataset(name, "test", data=root, images=data.test) for name in data.tests}
        return cls(train, val, test, tests)

    def checksums(self) -> dict[str, str]:
        named = {"train": self.train, "val": self.val, "test": self.test, **self.tests}
        return {name: dataset.checksum() for name, dataset in named.items() if dataset is not None}
