"""Appendix table 3: multirn-h with BCN convolutions of other widths."""

from dataclasses import replace

from bcn.paper.recipes.row import Row, row
from bcn.paper.recipes.table3 import multirn_h
from bcn.paper.tables import published, published_rows
from bcn.training.recipe import Recipe, Scale


def bcn_size(name: str, sizes: tuple[int, ...]) -> Row:
    def recipe(scale: Scale) -> Recipe:
        return replace(
            multirn_h(scale),
            name=f"bcn-size/{name}",
            arguments=(("sizes", sizes),),
            paper=published("bcn-size", name),
        )

    return recipe


for _name, _row in published_rows("bcn_size").items():
    _of = multirn_h if _name == "128-128-256" else bcn_size(_name, tuple(_row["sizes"]))
    row(f"bcn-size/{_name}")(_of)
