"""Runs of a few images on a device, and whether two of them ended alike."""

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from bcn.paper.tables import find_recipe
from bcn.training.loop import train
from bcn.training.recipe import Optim, Precision
from bcn.training.run import run_id
from bcn.training.runtime import Runtime
from bcn.training.weights import read_weights

SGD = Optim("sgd", 0.01, momentum=0.9, clip_norm=1.0, ema_decay=0.9)
"""Adam would turn the rounding of a gradient that is zero, a bias' before BatchNorm, into a step of full length"""


def train_small(
    name: str, runs: Path, runtime: Runtime, optim: Optim | None = None, precision: Precision = "float32"
) -> dict[str, Tensor]:
    """The last weights of a recipe at smoke scale, on two images."""
    recipe = find_recipe(name, "smoke")
    data = replace(recipe.data, train=2, val=1, test=1)
    recipe = replace(recipe, data=data, batch_size=1, optim=optim or recipe.optim, precision=precision)
    train(recipe, seed=0, runs=runs, threads=1, runtime=runtime)
    return read_weights(runs / run_id(recipe, 0) / "last.safetensors")[0]


def assert_same_weights(ours: dict[str, Tensor], theirs: dict[str, Tensor], tolerance: float) -> None:
    assert ours.keys() == theirs.keys()
    for key, tensor in theirs.items():
        torch.testing.assert_close(ours[key], tensor, rtol=tolerance, atol=tolerance)
