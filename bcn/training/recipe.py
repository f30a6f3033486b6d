"""A recipe is everything that determines a run, except the seed: one frozen dataclass, one function per table row."""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

from bcn.errors import BcnError
from bcn.models.registry import ADDED as ADDED_ARGUMENTS

Scale = Literal["smoke", "cpu", "paper"]
Precision = Literal["float32", "tf32", "bf16"]


@dataclass(frozen=True)
class Optim:
    name: Literal["sgd", "adam", "muon"]
    lr: float
    """the learning rate: of the start under "step-decay", the peak under "warmup-cosine" """
    momentum: float = 0.0
    weight_decay: float = 0.0
    schedule: Literal["step-decay", "warmup-cosine", "warmup-doubling"] = "step-decay"
    milestones: tuple[int, ...] = ()
    """epochs after which step decay multiplies the learning rate by 0.1"""
    warmup: float = 0.0
    """share of all steps in which the learning rate rises from near zero, linearly or by doubling"""
    clip_norm: float | None = None
    """largest norm of the gradient of all trained parameters together"""
    ema_decay: float | None = None
    """decay of an exponential moving average (EMA) of the weights, which is then evaluated and kept"""


@dataclass(frozen=True)
class Auxiliary:
    """Auxiliary supervision from scene annotations, in training alone (`bcn.training.auxiliary`)."""

    object_epochs: int = 0
    """epochs at the start in which the CNN alone is pre-trained on the objects of its images"""
    referent_epochs: int = 0
    """epochs after that of referent supervision alone; answers and referents follow together. 0 is no referents"""

    @property
    def epochs(self) -> int:
        """Epochs at the start that train no answers."""
        return self.object_epochs + self.referent_epochs


@dataclass(frozen=True)
class Data:
    name: str
    """with its version: "sort-of-clevr-v1" """
    train: int | None = None
    """images to train on; None is all"""
    val: int | None = None
    test: int | None = None
    split: Literal["train", "train+val"] = "train"
    """what is trained on; with "train+val" nothing is held out, and the last weights are kept"""
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
    batch_size: int
    """images in a step, over all ranks together"""
    epochs: int
    arguments: tuple[tuple[str, str | bool | int | float | tuple[int, ...]], ...] = ()
    """keyword arguments of create_model, besides those that the data determines: vocab_size and num_answers"""
    localise: bool = False
    """whether the mean square error of the centre is added to the loss, with equal weight"""
    augment: bool = False
    curriculum_epochs: int = 0
    """epochs at the start with the easy questions alone, as the data set's `curriculum` selects them"""
    auxiliary: Auxiliary | None = None
    word_embeddings: Literal["random", "glove"] = "random"
    """how word embeddings are initialised, where questions are in words"""
    batch_of: Literal["images", "pairs"] = "images"
    """what `batch_size` counts: images with all of their questions, or image-question pairs drawn independently"""
    initialisation: Literal["default", "positive-bias", "balanced"] = "default"
    """initial weights: PyTorch's; those with a BCN whose channels all start above zero; or variance-balanced, by
    `bcn.models.balance.balance_broadcast` on 256 training images"""
    precision: Precision = "float32"
    """of matrix products and convolutions in training: float32; tf32, its factors rounded to 10 bits by GPUs that do;
    or bf16, with activations in 16 bits and sums over objects, losses and weights in 32. Evaluation is in float32"""
    accumulate: int = 1
    """parts that a step trains one after the other, their gradients added up: less memory, and BatchNorm statistics of
    a part each"""
    questions_per_image: int = 0
    """questions about each image that a step trains, drawn anew each time; 0 is all of them"""
    mirror: bool = False
    """whether augmentation may mirror your own images, with "left" and "right" exchanged in questions and answers: not
    where letters are read, or a side is called otherwise"""
    start: str = ""
    """trained weights to start from, such as "clevr/multirn-h"; a run names them with their checksum"""
    patience: int = 0
    """epochs without a better validation after which training ends; 0 is never. A schedule that decays to the end, such
    as "warmup-cosine", gains most in its last epochs: there it saves time at the cost of accuracy"""
    paper: tuple[tuple[str, float], ...] = ()
    """what the paper reports for this row: metric and value"""


DESCRIPTIVE = ("paper",)
"""fields that describe a run and do not determine it: another wording is still the same run"""

ADDED = {
    "precision": "float32",
    "accumulate": 1,
    "questions_per_image": 0,
    "start": "",
    "mirror": False,
    "patience": 0,
}
"""fields that came later, and what all runs had before: with that a run keeps its name"""

LARGEST_BATCH = 2**16
"""more images do not fit into any memory"""


def fingerprint(recipe: Recipe) -> str:
    """Eight hexadecimal digits of a hash of everything that determines the run."""
    values = {
        key: value
        for key, value in asdict(recipe).items()
        if key not in DESCRIPTIVE and (key not in ADDED or value != ADDED[key])
    }
    values["arguments"] = [pair for pair in recipe.arguments if pair not in ADDED_ARGUMENTS.items()]
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:8]


def phases(recipe: Recipe) -> dict[str, int]:
    """The parts of a run whose steps differ in cost, in order, and the epochs of each."""
    auxiliary = recipe.auxiliary or Auxiliary()
    first = {
        "object supervision": auxiliary.object_epochs,
        "referent supervision": auxiliary.referent_epochs,
        "curriculum": min(recipe.curriculum_epochs, recipe.epochs),
    }
    parts = {**first, "main": recipe.epochs - sum(first.values())}
    return {name: epochs for name, epochs in parts.items() if epochs > 0}


def check(recipe: Recipe) -> None:
    """Refuse values out of range, all in one message."""
    optim, data, auxiliary = recipe.optim, recipe.data, recipe.auxiliary or Auxiliary()
    objects, referents, infinity = auxiliary.object_epochs, auxiliary.referent_epochs, float("inf")
    left = max(0, recipe.epochs - objects)
    milestones, splits = ",".join(map(str, optim.milestones)), {"train": data.train, "val": data.val, "test": data.test}
    accepted = {
        f"batch_size={recipe.batch_size}": (1 <= recipe.batch_size <= LARGEST_BATCH, f"1 to {LARGEST_BATCH}"),
        f"accumulate={recipe.accumulate}": (
            1 <= recipe.accumulate <= max(1, recipe.batch_size),
            "1 to the batch size",
        ),
        f"epochs={recipe.epochs}": (recipe.epochs >= 1, "1 and more"),
        f"curriculum_epochs={recipe.curriculum_epochs}": (recipe.curriculum_epochs >= 0, "0 and more"),
        f"patience={recipe.patience}": (recipe.patience >= 0, "0, which is off, and 1 and more"),
        f"questions_per_image={recipe.questions_per_image}": (
            recipe.questions_per_image >= 0,
            "0, which is all, and more",
        ),
        f"auxiliary.object_epochs={objects}": (0 <= objects <= recipe.epochs, f"0 to {recipe.epochs}, the epochs"),
        f"auxiliary.referent_epochs={referents}": (0 <= referents <= left, f"0 to {left}, the epochs that are left"),
        f"optim.lr={optim.lr}": (0 < optim.lr < infinity, "above 0"),
        f"optim.momentum={optim.momentum}": (0 <= optim.momentum < 1, "0 to below 1"),
        f"optim.weight_decay={optim.weight_decay}": (0 <= optim.weight_decay < infinity, "0 and more"),
        f"optim.milestones={milestones}": (min(optim.milestones, default=0) >= 0, "0 and more"),
        f"optim.warmup={optim.warmup}": (0 <= optim.warmup < 1, "0 to below 1"),
        f"optim.clip_norm={optim.clip_norm}": (optim.clip_norm is None or optim.clip_norm > 0, "none, and above 0"),
        f"optim.ema_decay={optim.ema_decay}": (
            optim.ema_decay is None or 0 < optim.ema_decay < 1,
            "none, and between 0 and 1",
        ),
        **{
            f"data.{split}={images}": (images is None or images >= 1, "none, which is all, and 1 and more")
            for split, images in splits.items()
        },
    }
    if recipe.patience:
        accepted[f"patience={recipe.patience} and data.split={data.split}"] = (data.split == "train", "split train")
    if recipe.batch_of == "pairs":
        whole_images = {"curriculum_epochs": recipe.curriculum_epochs, "auxiliary.epochs": auxiliary.epochs}
        accepted |= {f"{name}={epochs} and batch_of=pairs": (epochs == 0, "0") for name, epochs in whole_images.items()}
    if wrong := [f"{given} (accepted: {what})" for given, (suits, what) in accepted.items() if not suits]:
        raise BcnError(f"{recipe.name} cannot be trained with {', '.join(wrong)}")


def from_json(value: dict[str, Any]) -> Recipe:
    """The recipe that `asdict` and JSON were made from.

    >>> tiny = Recipe("table3/rn", "cpu", Data("sort-of-clevr-v1"), "sort-of-clevr/rn", Optim("adam", 1e-3), 8, 2)
    >>> from_json(json.loads(json.dumps(asdict(tiny)))) == tiny
    True
    """
    try:
        parts = {"data": Data, "optim": Optim, "auxiliary": Auxiliary}
        return Recipe(
            **{
                key: parts[key](**_tuples(item)) if key in parts and item is not None else _tuples(item)
                for key, item in value.items()
            }
        )
    except (AttributeError, TypeError) as error:
        raise BcnError(f"the recipe was written by another version of bcn ({error}); start a new run") from error


def _tuples(value: Any) -> Any:
    """JSON's lists as tuples, also in the values of a dictionary."""
    if isinstance(value, dict):
        return {key: _tuples(item) for key, item in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
