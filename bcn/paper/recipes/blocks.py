"""Ours: other blocks in the place of the BCN, with as many parameters, in the networks of tables 1 and 2.

Digits are classified and localised, and tested on larger and rotated ones too; photographs are classified. So that all
rows can have three seeds, a run is 3,000 small steps of Adam, a few minutes of one core. On digits a BCN gets further
in validation with them than with as many samples in the schedule of table 1.
"""

from collections.abc import Mapping
from dataclasses import replace

from bcn.models.drop_in import BLOCKS
from bcn.paper.recipes import deformation, table1, table2
from bcn.paper.recipes.row import Row, Rows
from bcn.training.recipe import Optim, Recipe, Scale

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
    """Fewer images, tests or epochs at `cpu`, in smaller steps of another optimiser."""
    if scale != "cpu":
        return recipe
    small = replace(recipe, batch_size=16, optim=Optim("adam", 2e-3, schedule="warmup-cosine", warmup=0.2))
    if recipe.data.name == "stl10":
        return replace(small, epochs=10)
    return replace(
        small, optim=replace(small.optim, lr=3e-3), data=replace(small.data, train=24_000, test=2_000), epochs=2
    )


DIGITS = table1.BASE.publish(data=replace(table1.PUBLISHED.data, tests=deformation.TESTS[:3]))
ROWS: Rows = {name: _row(DIGITS, name, "scaled-mnist", about, name) for name, about in (ABOUT | PLACES).items()}
ROWS |= {
    f"stl10-{name}": _row(table2.BASE, f"stl10-{name}", "stl10", f"{about}, on STL-10", name)
    for name, about in ABOUT.items()
}
