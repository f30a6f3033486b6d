"""Table 5: coordinate embeddings, with the BCN of table 1 and with the multiRN of table 3 (section 5.5)."""

from dataclasses import replace

from bcn.paper.recipes import table1, table3
from bcn.paper.recipes.row import Row, Rows

EMBEDDINGS = {
    "none": (("planes", ""),),
    "xy-top-left": (("planes", "xy"), ("origin", "top-left")),
    "xy-centred": (("planes", "xy"),),
}
"""arguments of the model; the paper's own choice, xy-centred-radial, is what tables 1 and 3 train"""


def _rows(table: str, base: Row) -> Rows:
    others = {
        name: replace(
            base.publish(name=f"{table}/{name}", arguments=arguments), about=f"{base.about}, coordinates: {name}"
        )
        for name, arguments in EMBEDDINGS.items()
    }
    return others | {"xy-centred-radial": base}


SCALED_MNIST = _rows("table5-scaled-mnist", table1.ROWS["bcn"])
SORT_OF_CLEVR = _rows("table5-sort-of-clevr", table3.ROWS["multirn-h"])
