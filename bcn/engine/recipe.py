"""A recipe is everything that decides a run, except the seed: one frozen value, made by one function per row of a table."""

from dataclasses import dataclass
from typing import Literal

Scale = Literal["smoke", "cpu", "paper"]


@dataclass(frozen=True)
class Optim:
    name: Literal["sgd", "adam"]
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
    arguments: tuple[tuple[str, str | tuple[int, ...]], ...] = ()
    """keyword arguments of create_model"""
    localise: bool = False
    """whether the centre's mean square error is added to the loss, with equal weight"""
    augment: bool = False
    non_relational_first: int = 0
    """epochs at the start in which only the non-relational questions are asked"""
    paper: tuple[tuple[str, float], ...] = ()
    """what the paper reports for this row: metric and value"""
    deviations: tuple[str, ...] = ()
    """every departure from the paper and every choice that it leaves open, in words"""
