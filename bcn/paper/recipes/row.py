"""A row of a table: the recipe that the paper trained, and ours at each scale."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bcn.training.recipe import Recipe, Scale

AtScale = Callable[[Recipe, Scale], Recipe]
Notes = Callable[[Recipe], Mapping[str, str]]
Rows = dict[str, "Row"]
"""by their names in the table"""


@dataclass(frozen=True)
class Row:
    about: str
    published: Recipe
    """what the paper trained; `unspecified` fields have our choice"""
    at_scale: AtScale
    """the published recipe and a scale to the recipe that we train"""
    unspecified: tuple[str, ...]
    """fields that the paper does not give: "batch_size", "optim.momentum", ..."""
    notes: Notes
    """departures from the paper that no field shows: our recipe to a sentence by topic"""

    def recipe(self, scale: Scale) -> Recipe:
        return self.at_scale(self.published, scale)

    def publish(self, **fields: Any) -> "Row":
        """The same row, with other fields in the published recipe."""
        return replace(self, published=replace(self.published, **fields))

    def then(self, change: AtScale) -> "Row":
        """The same row, with our recipe changed after it was scaled."""
        return replace(self, at_scale=lambda recipe, scale: change(self.at_scale(recipe, scale), scale))


def model_rows(table: str, base: Row, about: Mapping[str, str]) -> Rows:
    """Rows that differ in the model alone, which has the row's name.

    Args:
        base: any row; its name, model and description are replaced
        about: a description for the name of each row
    """
    family = base.published.model.split("/")[0]
    return {
        row: replace(base.publish(name=f"{table}/{row}", model=f"{family}/{row}"), about=text)
        for row, text in about.items()
    }
