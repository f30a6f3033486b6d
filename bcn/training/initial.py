"""The initial weights that a recipe asks for, from training images that the seed decides."""

from bcn.data.dataset import Dataset
from bcn.models.balance import balance_broadcast, raise_bias
from bcn.training.forward import device_of, move_to
from bcn.training.recipe import Recipe
from bcn.training.state import State

BALANCE_IMAGES = 256
"""of variance-balanced initial weights"""


def initialise(state: State, recipe: Recipe, train: Dataset, *, seed: int) -> None:
    if recipe.initialisation == "balanced":
        batch = move_to(train[train.order(0, seed=seed)[:BALANCE_IMAGES]], device_of(state.model))
        balance_broadcast(state.model, train.preprocessing(batch.image), batch.question)
    elif recipe.initialisation == "positive-bias":
        raise_bias(state.model)
    if state.ema is not None:
        state.ema.load_state_dict(state.model.state_dict())
