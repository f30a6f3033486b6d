"""Ours: the leaderboard of Sort-of-CLEVR v2, every model by one protocol (docs/guides/benchmark.md).

A row is a model on 9,800 images, on fresh scenes ("-stream"), or on the objects of these scenes ("-states"). Epochs are
what a row's measured steps leave room for within the budget of CPU time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from bcn.data.sort_of_clevr_v2 import ANSWERS, BITS, BY_CORRUPTION, BY_OBJECTS, OBJECTS, V2, V2_STREAM
from bcn.paper.recipes.row import Row, Rows
from bcn.training.recipe import Data, Optim, Recipe, Scale

BUDGET_MINUTES = 30
"""CPU time of the training steps of a run"""
SEEDS = 3
OPTIM = Optim("adam", 1.5e-3, schedule="warmup-cosine", warmup=0.1, ema_decay=0.999)
ARGUMENTS: Mapping[str, Any] = {"question_dim": BITS, "num_answers": len(ANSWERS)}
"""what the data determine of every model"""
LINEAR = {"final_relu": False}
"""a BCN whose channels cannot die"""


NUMBERS = BY_OBJECTS
"""test sets by number of objects"""
SEEN = range(OBJECTS[0], OBJECTS[1] + 1)
"""numbers of objects in training"""
CORRUPTIONS = {name: corruption for corruption, name in BY_CORRUPTION.items()}
"""test sets by corruption of the image, and what it is called"""
TESTS = {"": (*NUMBERS.values(), *CORRUPTIONS), "-states": tuple(NUMBERS.values())}
"""further test sets, of images and of objects"""


@dataclass(frozen=True)
class Entrant:
    about: str
    epochs: int
    arguments: Mapping[str, Any]
    initialisation: Literal["default", "balanced"] = "default"
    train: int | None = None
    """images of an epoch, where the budget has no room for all"""


def _entrant(about: str, epochs: int, *, balanced: bool = False, train: int | None = None, **arguments: Any) -> Entrant:
    return Entrant(about, epochs, arguments, "balanced" if balanced else "default", train)


IMAGES = {
    "rn": _entrant("the relation network, 25 objects", 1, train=6000),
    "coordconv-mlp": _entrant("a CNN of CoordConvs and an MLP, no relations", 55),
    "deep-sets": _entrant("multiRN without a BCN, as many parameters", 18),
    "film": _entrant("convolutions that the question scales and shifts", 11),
    "transformer": _entrant("a Transformer encoder, the question as a token", 10),
    "set-transformer": _entrant("a Set Transformer (ISAB)", 8),
    "multirn": _entrant("equation 4 with 25 objects", 30, **LINEAR),
    "multirn-h": _entrant("equation 4 with 100 objects", 12, **LINEAR),
    "multirn-rounds": _entrant("broadcast after asking, 25 objects", 25, balanced=True),
    "multirn-rounds-h": _entrant("broadcast after asking, 100 objects", 5, balanced=True),
}
STATES = {
    "rn-states": _entrant("the relation network", 3),
    "mlp-states": _entrant("all objects in one vector, no relations", 80),
    "deep-sets-states": _entrant("multiRN without a BCN", 34),
    "film-states": _entrant("an MLP that the question scales and shifts", 21),
    "transformer-states": _entrant("a Transformer encoder, the question as a token", 22),
    "set-transformer-states": _entrant("a Set Transformer (ISAB)", 15),
    "multirn-states": _entrant("equation 4", 46, **LINEAR),
    "multirn-rounds-states": _entrant("broadcast after asking", 24, balanced=True),
}


def protocol(
    model: str,
    *,
    epochs: int,
    row: str | None = None,
    data: str = V2,
    scale: Scale = "cpu",
    train: int | None = None,
    arguments: Mapping[str, Any] = ARGUMENTS,
    initialisation: Literal["default", "balanced"] = "default",
) -> Recipe:
    """The recipe of a row of the leaderboard.

    Args:
        model: its name in the registry.
        row: its name on the leaderboard; by default the part of `model` after the slash.
        data: what it is trained on: "sort-of-clevr-v2", its "-stream", or one of these with "-states".
        train: images of an epoch; by default 9,800.
    """
    suffix = "-states" if data.endswith("-states") else ""
    recipe = Recipe(
        name=f"leaderboard/{row or model.split('/')[-1]}",
        scale=scale,
        data=Data(data, train=train, test=1000, tests=tuple(f"{name}{suffix}" for name in TESTS[suffix])),
        model=model,
        optim=OPTIM,
        batch_size=8,
        epochs=epochs,
        arguments=tuple(arguments.items()),
        initialisation=initialisation,
    )
    if scale != "smoke":
        return recipe
    return replace(recipe, data=replace(recipe.data, train=4, val=2, test=2), batch_size=2, epochs=2)


def _row(model: str, entrant: Entrant, *, stream: bool) -> Row:
    states = "-states" if model.endswith("-states") else ""
    row = f"{model}-stream" if stream else model
    arguments = {**entrant.arguments, **ARGUMENTS}
    fields: dict[str, Any] = {
        "data": f"{V2_STREAM if stream else V2}{states}",
        "row": row,
        "epochs": entrant.epochs,
        "train": entrant.train,
        "arguments": arguments,
        "initialisation": entrant.initialisation,
    }

    def at_scale(recipe: Recipe, scale: Scale) -> Recipe:
        """The same at `cpu` and `paper`."""
        return protocol(recipe.model, scale=scale, **fields)

    about = f"{entrant.about}; {'scenes that never repeat' if stream else '9,800 scenes'}"
    return Row(about, protocol(f"sort-of-clevr/{model}", scale="paper", **fields), at_scale, (), lambda recipe: {})


ROWS: Rows = {
    f"{model}-stream" if stream else model: _row(model, entrant, stream=stream)
    for models in (IMAGES, STATES)
    for stream in (False, True)
    for model, entrant in models.items()
}
