"""A recipe is everything that decides a run, except the seed: one frozen value, one function per row of a table."""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

from bcn.errors import BcnError

Scale = Literal["smoke", "cpu", "paper"]


@dataclass(frozen=True)
class Optim:
    name: Literal["sgd", "adam", "muon"]
    lr: float
    """the learning rate; the peak where the schedule is one-cycle"""
    momentum: float = 0.0
    weight_decay: float = 0.0
    schedule: Literal["steps", "one-cycle"] = "steps"
    milestones: tuple[int, ...] = ()
    """epochs after which the schedule `steps` multiplies the rate by 0.1"""
    warmup: float = 0.0
    """share of all steps in which the rate rises linearly from near zero"""
    clip: float | None = None
    """largest norm of the gradient"""
    average: float | None = None
    """decay of an exponential moving average of the weights, which is then what is evaluated and kept"""


@dataclass(frozen=True)
class Data:
    name: str
    """with its version: "sort-of-clevr-v1" """
    train: int | None = None
    """images to train on; None is all"""
    val: int | None = None
    test: int | None = None
    split: Literal["train", "train+val"] = "train"
    """what is trained on; with "train+val" nothing is held out, and the last weights are the ones that count"""
    questions: Literal["sampled", "all"] = "sampled"
    """which questions of each training image are asked; evaluation always asks the sampled ones"""
    tests: tuple[str, ...] = ()
    """further data sets whose test split is evaluated at the end"""


@dataclass(frozen=True)
class Recipe:
    name: str
    """table and row: "table3/multirn-h" """
    scale: Scale
    data: Data
    model: str
    optim: Optim
    batch: int
    """images in a step, over all ranks together"""
    epochs: int
    arguments: tuple[tuple[str, str | int | tuple[int, ...]], ...] = ()
    """keyword arguments of create_model, besides those that the data decides: how many words and answers there are"""
    localise: bool = False
    """whether the centre's mean square error is added to the loss, with equal weight"""
    augment: bool = False
    non_relational_first: int = 0
    """epochs at the start in which only the non-relational questions are asked"""
    sight: int = 0
    """epochs at the start in which the CNN alone learns to see, by `bcn.data.clevr_like.sight`"""
    pointing: int = 0
    """epochs after that in which it points at the things that are meant, by `bcn.data.clevr_like.pointing`, before it
    answers too; 0 is not at all"""
    vectors: Literal["random", "glove"] = "random"
    """what the vectors of words start from, where questions are in words"""
    paper: tuple[tuple[str, float], ...] = ()
    """what the paper reports for this row: metric and value"""
    deviations: tuple[str, ...] = ()
    """every departure from the paper and every choice that it leaves open, in words"""


DESCRIPTIVE = ("paper", "deviations")
"""fields that describe a run and do not decide it: another wording is still the same run"""

LATER = {"vectors": "random", "sight": 0, "pointing": 0}
"""fields that came later, and the value at which they are left out, so that the runs of before keep their names"""

GONE = {"lessons": (), "f_anew": 0, "short_first": 0, "rehearse": 0}
"""fields that went, and the value at which they did nothing: records from then are still records"""

LARGEST_BATCH = 2**16
"""more images do not fit into any memory"""


def fingerprint(recipe: Recipe) -> str:
    """Eight hexadecimal digits of everything that decides the run."""
    decisive = {
        key: value
        for key, value in asdict(recipe).items()
        if key not in DESCRIPTIVE and not (key in LATER and value == LATER[key])
    }
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:8]


def phases(recipe: Recipe) -> dict[str, int]:
    """The parts of a run whose steps take unlike times, in their order, and the epochs of each."""
    first = {
        "sight": recipe.sight,
        "pointing": recipe.pointing,
        "non-relational questions": min(recipe.non_relational_first, recipe.epochs),
    }
    parts = {**first, "the run": recipe.epochs - sum(first.values())}
    return {name: epochs for name, epochs in parts.items() if epochs > 0}


def check(recipe: Recipe) -> None:
    """Name every value that cannot be meant."""
    optim, data = recipe.optim, recipe.data
    left, infinity = max(0, recipe.epochs - recipe.sight), float("inf")
    milestones, splits = ",".join(map(str, optim.milestones)), {"train": data.train, "val": data.val, "test": data.test}
    accepted = {
        f"batch={recipe.batch}": (1 <= recipe.batch <= LARGEST_BATCH, f"1 to {LARGEST_BATCH}"),
        f"epochs={recipe.epochs}": (recipe.epochs >= 1, "1 and more"),
        f"non_relational_first={recipe.non_relational_first}": (recipe.non_relational_first >= 0, "0 and more"),
        f"sight={recipe.sight}": (0 <= recipe.sight <= recipe.epochs, f"0 to {recipe.epochs}, the epochs"),
        f"pointing={recipe.pointing}": (0 <= recipe.pointing <= left, f"0 to {left}, the epochs after sight"),
        f"optim.lr={optim.lr}": (0 < optim.lr < infinity, "above 0"),
        f"optim.momentum={optim.momentum}": (0 <= optim.momentum < 1, "0 to below 1"),
        f"optim.weight_decay={optim.weight_decay}": (0 <= optim.weight_decay < infinity, "0 and more"),
        f"optim.milestones={milestones}": (min(optim.milestones, default=0) >= 0, "0 and more"),
        f"optim.warmup={optim.warmup}": (0 <= optim.warmup < 1, "0 to below 1"),
        f"optim.clip={optim.clip}": (optim.clip is None or optim.clip > 0, "none, and above 0"),
        f"optim.average={optim.average}": (optim.average is None or 0 < optim.average < 1, "none, and between 0 and 1"),
        **{
            f"data.{split}={images}": (images is None or images >= 1, "none, which is all, and 1 and more")
            for split, images in splits.items()
        },
    }
    if wrong := [f"{given} (accepted: {what})" for given, (suits, what) in accepted.items() if not suits]:
        raise BcnError(f"{recipe.name} cannot be trained with {', '.join(wrong)}")


def from_json(value: dict[str, Any]) -> Recipe:
    """The recipe that `asdict` and JSON made of it.

    >>> tiny = Recipe("table3/rn", "cpu", Data("sort-of-clevr-v1"), "sort-of-clevr/rn", Optim("adam", 1e-3), 8, 2)
    >>> from_json(json.loads(json.dumps(asdict(tiny)))) == tiny
    True
    """
    try:
        fields = {key: _tuples(item) for key, item in value.items() if key not in ("data", "optim")}
        fields = {key: item for key, item in fields.items() if key not in GONE or item != GONE[key]}
        data = Data(**{key: _tuples(item) for key, item in value["data"].items()})
        optim = Optim(**{key: _tuples(item) for key, item in value["optim"].items()})
        return Recipe(data=data, optim=optim, **fields)
    except (AttributeError, KeyError, TypeError) as error:
        raise BcnError(f"the recipe was written by another version of bcn ({error}); start a new run") from error


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
