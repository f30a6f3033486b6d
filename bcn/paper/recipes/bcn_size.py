"""Appendix table 3: multirn-h with BCN convolutions of other widths."""

from dataclasses import replace

from bcn.paper.published import published_rows
from bcn.paper.recipes import table3
from bcn.paper.recipes.row import Row, Rows
from bcn.training.recipe import Recipe, Scale


def no_bcn(recipe: Recipe, scale: Scale) -> Recipe:
    """Without what only a BCN has."""
    return replace(recipe, arguments=(("sizes", ()),))


def with_sizes(name: str, sizes: tuple[int, ...]) -> Row:
    base = table3.ROWS["multirn-h"]
    if sizes == (128, 128, 256):
        return base
    if not sizes:
        base = base.then(no_bcn)
    return replace(
        base.publish(name=f"bcn-size/{name}", arguments=(("sizes", sizes),)), about=f"{base.about}, BCN {name}"
    )


ROWS: Rows = {name: with_sizes(name, tuple(row["sizes"])) for name, row in published_rows("bcn_size").items()}
