"""Ours: what a BCN adds to multiRN at batch size 32, where its channels stay active; table 3 as the paper trains it."""

from dataclasses import replace

from bcn.paper.recipes import table3
from bcn.paper.recipes.row import RELU, Row, Rows
from bcn.training.recipe import Recipe, Scale


def at_scale(recipe: Recipe, scale: Scale) -> Recipe:
    """The paper's epochs, learning rates and 20 questions at `cpu` too."""
    name = recipe.name.replace("table3/", "batch32/")
    if scale == "smoke":
        return replace(table3.at_scale(recipe, scale), name=name)
    return replace(table3.at_scale(recipe, "paper"), name=name, scale=scale, batch_size=32)


def _row(name: str) -> Row:
    return replace(table3.ROWS[name], at_scale=at_scale)


ROWS: Rows = {"multirn-no-bcn": _row("multirn-no-bcn"), "multirn": _row("multirn").then(RELU)}
