"""Ours: weights that hold in the wild, trained on varied pictures of 2 to 8 objects that never repeat.

As the leaderboard's rows but for the pictures and the time: steps for about 150 minutes of one core, or 60 ("-hour").
"""

from dataclasses import replace
from typing import Any, NamedTuple

from bcn.data.sort_of_clevr_v2 import V2_VARIED
from bcn.paper.recipes.leaderboard import ARGUMENTS, IMAGES, protocol
from bcn.paper.recipes.row import Row, Rows
from bcn.training.recipe import Recipe, Scale

BUDGET_MINUTES = {"-wild": 150, "-wild-hour": 60}
"""CPU time of the training steps of a run, by what its row's name ends in"""


class Length(NamedTuple):
    epochs: int
    curriculum: int
    """first epochs, with unary questions alone"""


LENGTHS = {
    "multirn-h-wild": Length(58, 3),
    "multirn-h-wild-hour": Length(23, 1),
    "multirn-rounds-wild": Length(112, 0),
    "multirn-rounds-wild-hour": Length(45, 0),
    "multirn-rounds-h-wild": Length(28, 0),
    "multirn-rounds-h-wild-hour": Length(12, 0),
}


def _row(row: str, length: Length) -> Row:
    model, _, ending = row.partition("-wild")
    entrant = IMAGES[model]
    fields: dict[str, Any] = {
        "data": V2_VARIED,
        "epochs": length.epochs,
        "arguments": {**entrant.arguments, **ARGUMENTS},
        "initialisation": entrant.initialisation,
    }

    def at_scale(recipe: Recipe, scale: Scale) -> Recipe:
        """The same at `cpu` and `paper`."""
        followed = protocol(recipe.model, scale=scale, **fields)
        return replace(followed, name=f"wild/{row}", curriculum_epochs=min(length.curriculum, followed.epochs - 1))

    about = f"{entrant.about}; varied pictures, {BUDGET_MINUTES[f'-wild{ending}']} CPU minutes"
    published = at_scale(protocol(f"sort-of-clevr/{model}", scale="paper", **fields), "paper")
    return Row(about, published, at_scale, (), lambda recipe: {})


ROWS: Rows = {row: _row(row, length) for row, length in LENGTHS.items()}
