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


def with_arguments(**arguments: Any) -> AtScale:
    """A change of recipes: these arguments of the model, after those that it has."""

    def change(recipe: Recipe, scale: Scale) -> Recipe:
        return replace(recipe, arguments=(*recipe.arguments, *arguments.items()))

    return change


LINEAR, RELU = with_arguments(final_relu=False), with_arguments(final_relu=True)
"""what follows the BCN's last convolution: nothing, so that no channel can die (docs/results/broadcast.md); or a ReLU,
in rows whose records are from before one could do without"""


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
