"""Ours: table 3's multiRN on sort-of-clevr-v2, with 2 to 8 objects and ternary questions."""

from collections.abc import Mapping
from dataclasses import replace

from bcn.data.sort_of_clevr_v2 import ANSWERS, BITS, BY_OBJECTS
from bcn.paper.recipes import table3
from bcn.paper.recipes.row import Row, Rows
from bcn.training.recipe import Recipe, Scale

ARGUMENTS = (("question_dim", BITS), ("num_answers", len(ANSWERS)))
NOTES: Mapping[str, str] = {
    "generator": "`sort-of-clevr-v2` has 2 to 8 objects, unary, binary and ternary questions, and up to four of each "
    "of nine kinds about an image",
    **{topic: note for topic, note in table3.NOTES.items() if topic != "generator"},
}


def on_v2(recipe: Recipe, scale: Scale) -> Recipe:
    data = replace(recipe.data, name="sort-of-clevr-v2", questions="sampled", tests=tuple(BY_OBJECTS.values()))
    name = recipe.name.replace("table3/", "sort-of-clevr-v2/")
    return replace(recipe, name=name, data=data, arguments=(*recipe.arguments, *ARGUMENTS))


def _row(name: str) -> Row:
    return replace(table3.ROWS[name].then(on_v2), notes=lambda recipe: NOTES)


ROWS: Rows = {name: _row(name) for name in ("multirn-no-bcn", "multirn", "multirn-h")}
