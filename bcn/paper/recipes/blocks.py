"""Ours: other blocks in the place of the BCN, with as many parameters, in the networks of tables 1 and 2.

Digits are classified and localised, and tested on larger and rotated ones too; photographs are classified. A run is a
quarter of one of table 1, or a third of one of table 2, so that all rows can have three seeds.
"""

from collections.abc import Mapping
from dataclasses import replace

from bcn.models.drop_in import BLOCKS
from bcn.paper.recipes import deformation, table1, table2
from bcn.paper.recipes.row import Row, Rows
from bcn.training.recipe import Recipe, Scale

ABOUT = {
    "none": "nothing",
    "se": "squeeze-and-excitation",
    "global-context": "global context",
    "cbam": "CBAM",
    "coord-conv": "a CoordConv block",
    "coordinate-attention": "coordinate attention",
    "self-attention": "self-attention",
    "bcn": "a BCN",
}
assert set(BLOCKS) < set(ABOUT)
PLACES = {"bcn-after-1": "a BCN after the first of three blocks", "bcn-after-3": "a BCN after the last of three blocks"}


def _row(base: Row, name: str, family: str, about: str, block: str) -> Row:
    """A row of table 1 or 2 with another model."""
    model = base.published.model if block == "none" else f"{family}-blocks/{block}"
    return replace(base.publish(name=f"blocks/{name}", model=model), about=about, notes=_notes).then(shorten)


def _notes(recipe: Recipe) -> Mapping[str, str]:
    return {"initialisation": "PyTorch's default initialisation for every block"}


def shorten(recipe: Recipe, scale: Scale) -> Recipe:
    """Fewer images, or epochs, at `cpu`."""
    if scale != "cpu":
        return recipe
    if recipe.data.name == "stl10":
        return replace(recipe, epochs=20)
    return replace(recipe, data=replace(recipe.data, train=20_000), epochs=6)


DIGITS = table1.BASE.publish(data=replace(table1.PUBLISHED.data, tests=deformation.TESTS[:3]))
ROWS: Rows = {name: _row(DIGITS, name, "scaled-mnist", about, name) for name, about in (ABOUT | PLACES).items()}
ROWS |= {
    f"stl10-{name}": _row(table2.BASE, f"stl10-{name}", "stl10", f"{about}, on STL-10", name)
    for name, about in ABOUT.items()
}
