"""The initial weights that a recipe asks for, from training images that the seed decides."""

from typing import cast

from bcn.models.balance import balance_broadcast, raise_bias
from bcn.training.auxiliary import ReferentHead, count_rounds
from bcn.training.forward import device_of, inputs_of, move_to
from bcn.training.recipe import Recipe
from bcn.training.splits import Splits
from bcn.training.state import State

BALANCE_IMAGES = 256
"""of variance-balanced initial weights"""


def initialise(state: State, recipe: Recipe, splits: Splits, *, seed: int) -> None:
    train = splits.train
    if splits.start is not None:
        splits.start.load_into(state.model)
    elif recipe.initialisation == "balanced":
        batch = move_to(train[train.order(0, seed=seed)[:BALANCE_IMAGES]], device_of(state.model))
        balance_broadcast(state.model, *inputs_of(batch, train.preprocessing))
        if "referents" in state.heads and count_rounds(recipe):
            cast(ReferentHead, state.heads["referents"]).lower_scores()  # which balancing has raised again
    elif recipe.initialisation == "positive-bias":
        raise_bias(state.model)
    if state.ema is not None:
        state.ema.load_state_dict(state.model.state_dict())
