"""The register of recipes: one function per row of a table, found by its name."""

from collections.abc import Callable
from dataclasses import replace

from bcn.paper.tables import published
from bcn.training.recipe import Recipe, Scale

Row = Callable[[Scale], Recipe]
ROWS: dict[str, Row] = {}
"""every recipe by name: "table3/multirn-h" """


def row(name: str) -> Callable[[Row], Row]:
    """Register a function as the recipe of "table/row"."""

    def register(function: Row) -> Row:
        assert name not in ROWS, name
        ROWS[name] = function
        return function

    return register


def vary(recipe: Recipe, name: str, model: str) -> Recipe:
    """The same training for another row: its name, its model, and what the paper says of it."""
    return replace(recipe, name=name, model=model, paper=published(*name.split("/")))
