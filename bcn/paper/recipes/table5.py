"""Table 5: coordinate embeddings, with the BCN of table 1 and with the multiRN of table 3 (section 5.5)."""

from dataclasses import replace

from bcn.paper.recipes.row import Row, row
from bcn.paper.recipes.table1 import bcn
from bcn.paper.recipes.table3 import multirn_h
from bcn.paper.tables import published
from bcn.training.recipe import Recipe, Scale

EMBEDDINGS = {
    "none": (("planes", ""),),
    "xy-top-left": (("planes", "xy"), ("origin", "top-left")),
    "xy-centred": (("planes", "xy"),),
}
"""the rivals, as arguments of the model; the paper's own choice, xy-centred-radial, is what tables 1 and 3 train"""


def embedding(of: Row, table: str, name: str) -> Row:
    def recipe(scale: Scale) -> Recipe:
        return replace(of(scale), name=f"{table}/{name}", arguments=EMBEDDINGS[name], paper=published(table, name))

    return recipe


for _table, _of in {"table5-scaled-mnist": bcn, "table5-sort-of-clevr": multirn_h}.items():
    for _name in EMBEDDINGS:
        row(f"{_table}/{_name}")(embedding(_of, _table, _name))
    row(f"{_table}/xy-centred-radial")(_of)
