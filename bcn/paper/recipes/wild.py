"""Ours: weights that hold in the wild, trained on varied pictures of 2 to 8 objects that never repeat.

As the leaderboard's rows but for the pictures and the time: steps for about 150 minutes of one core, or 60 ("-hour").

The row "multirn-wild" has auxiliary supervision from the scenes too, a wider CNN, and steps of more images with fewer
questions about each. With 24 channels and six epochs of object supervision squares and circles were told apart in
half of the cases, and nothing that depends on them was learned.
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
}
SUPERVISED_ROW = "multirn-wild"


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


def _supervise(recipe: Recipe, scale: Scale) -> Recipe:
    arguments = {**ARGUMENTS, "channels": (32, 64, 64, 64), "width": 64}
    followed = replace(
        recipe,
        name=f"wild/{SUPERVISED_ROW}",
        arguments=tuple(arguments.items()),
        optim=Optim("adam", 2e-3, schedule="warmup-cosine", warmup=0.05, clip_norm=10.0, ema_decay=0.999),
        questions_per_image=12,
    )
    if scale == "smoke":
        return replace(followed, epochs=3, auxiliary=Auxiliary(object_epochs=1, referent_epochs=1))
    return replace(
        followed,
        data=replace(recipe.data, train=24_000),
        batch_size=24,
        epochs=56,
        auxiliary=Auxiliary(object_epochs=12, referent_epochs=2),
    )


ROWS: Rows = {row: _row(row, length) for row, length in LENGTHS.items()}
_SUPERVISED = _row("multirn-rounds-h-wild", Length(56, 0)).then(_supervise)
ROWS[SUPERVISED_ROW] = replace(
    _SUPERVISED,
    about="broadcast after asking, 100 objects; varied pictures and their scenes, 150 CPU minutes",
    published=_SUPERVISED.recipe("paper"),
)
