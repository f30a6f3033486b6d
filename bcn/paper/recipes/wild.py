"""Ours: weights that hold in the wild, trained on varied pictures of 2 to 8 objects that never repeat.

As the leaderboard's rows but for the pictures and the time: steps for about 150 minutes of one core, or 60 ("-hour").
Rows "-supervised" have auxiliary supervision from the scenes too, and the optimiser that it was found with.
"""

from dataclasses import replace
from typing import Any, NamedTuple

from bcn.data.sort_of_clevr_v2 import V2_VARIED
from bcn.paper.recipes.leaderboard import ARGUMENTS, IMAGES, protocol
from bcn.paper.recipes.row import Row, Rows
from bcn.training.recipe import Auxiliary, Optim, Recipe, Scale

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
    "multirn-rounds-h-supervised-wild": Length(19, 0),
}
SUPERVISED = Optim("adam", 1e-3, schedule="warmup-cosine", warmup=0.05, clip_norm=10.0, ema_decay=0.999)
WIDTH = 128
"""of rounds with supervision: one that fused loops and eight roles divide"""


def _row(row: str, length: Length) -> Row:
    start, _, ending = row.partition("-wild")
    model = start.removesuffix("-supervised")
    supervised, entrant = start != model, IMAGES[model]
    fields: dict[str, Any] = {
        "data": V2_VARIED,
        "epochs": length.epochs,
        "arguments": {**entrant.arguments, **ARGUMENTS, **({"width": WIDTH} if supervised else {})},
        "initialisation": entrant.initialisation,
    }

    def at_scale(recipe: Recipe, scale: Scale) -> Recipe:
        """The same at `cpu` and `paper`."""
        followed = protocol(recipe.model, scale=scale, **fields)
        if supervised:
            auxiliary = Auxiliary(6, 1) if scale != "smoke" else Auxiliary(1, 1)
            followed = replace(followed, optim=SUPERVISED, auxiliary=auxiliary, epochs=max(3, followed.epochs))
        return replace(followed, name=f"wild/{row}", curriculum_epochs=min(length.curriculum, followed.epochs - 1))

    how = "varied pictures and their scenes" if supervised else "varied pictures"
    about = f"{entrant.about}; {how}, {BUDGET_MINUTES[f'-wild{ending}']} CPU minutes"
    published = at_scale(protocol(f"sort-of-clevr/{model}", scale="paper", **fields), "paper")
    return Row(about, published, at_scale, (), lambda recipe: {})


ROWS: Rows = {row: _row(row, length) for row, length in LENGTHS.items()}
