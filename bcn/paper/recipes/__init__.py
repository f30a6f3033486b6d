"""One recipe for every row of the paper's tables, at three scales: `smoke`, `cpu` and `paper`.

>>> find_recipe("table3/multirn-h", "paper").epochs
50
"""

from typing import cast, get_args

from bcn.errors import did_you_mean
from bcn.paper.recipes import (  # noqa: F401 (they register)
    ablation,
    batch32,
    bcn_size,
    deformation,
    own,
    stream,
    table1,
    table2,
    table3,
    table4,
    table5,
)
from bcn.paper.recipes.row import ROWS
from bcn.paper.tables import TABLES
from bcn.training.recipe import Recipe, Scale


def list_recipes(table: str | None = None) -> list[str]:
    """The names of all recipes, or of one table's, in the paper's order."""
    return [name for of in TABLES if table in (None, of) for name in ROWS if name.startswith(f"{of}/")]


def find_recipe(name: str, scale: str) -> Recipe:
    """The recipe of a row. Rows that train the same thing are one recipe, under the name of the first."""
    if name not in ROWS:
        raise did_you_mean("recipe", name, list_recipes())
    if scale not in get_args(Scale):
        raise did_you_mean("scale", scale, get_args(Scale))
    return ROWS[name](cast(Scale, scale))
