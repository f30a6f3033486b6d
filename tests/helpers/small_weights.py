"""Weights that take seconds: a run of the engine at smoke scale, and a model of Scaled-MNIST written by hand."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import nn

from bcn import create_model
from bcn.data.arrays import ArrayDataset
from bcn.paper.tables import find_recipe
from bcn.training.description import describe_weights
from bcn.training.loop import train
from bcn.training.run import run_id
from bcn.training.weights import write_weights


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="bcn-weights-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def scene_run() -> Path:
    """The directory of a finished run of multiRN on Sort-of-CLEVR."""
    recipe = find_recipe("table3/multirn-h", "smoke")
    train(recipe, seed=0, runs=_folder(), threads=1)
    return _folder() / run_id(recipe, 0)


@cache
def scene_v2_run(row: str = "multirn-h-wild") -> Path:
    """The directory of a finished run on varied pictures of Sort-of-CLEVR v2."""
    recipe = find_recipe(f"wild/{row}", "smoke")
    train(recipe, seed=0, runs=_folder(), threads=1)
    return _folder() / run_id(recipe, 0)


def ink_extent() -> nn.Module:
    """scaled-mnist/bcn by hand: broadcast how far ink reaches in four directions, and give the middle as the centre."""
    model = create_model("scaled-mnist/bcn", final_relu=True)
    weights = {name: torch.zeros_like(tensor) for name, tensor in model.state_dict().items()}
    for name, tensor in weights.items():
        if name.endswith(("norm.weight", "running_var")):
            tensor.fill_(1)
    weights["before.0.conv.weight"][0, 0] = weights["before.1.conv.weight"][0, 0] = 1  # no ink is missed
    k = [weights[f"middle.broadcast.k.{layer}.weight"] for layer in range(3)]
    k[0][0, 0] = -1  # channel 0: no ink here
    for channel, (plane, sign) in enumerate([(24, 1), (24, -1), (25, 1), (25, -1)], start=1):
        k[0][channel, plane] = sign  # 1 + x, 1 - x, 1 + y, 1 - y
        k[1][channel, channel], k[1][channel, 0] = 1, -4  # and nothing where there is no ink
        k[2][channel, channel] = 1
        weights["middle.reduce.weight"][channel, 24 + channel] = 1
        weights["after.0.conv.weight"][channel, channel, 1, 1] = 1
        weights["head.centre.weight"][(channel - 1) // 2, channel] = (
            sign / 4 * 31 / 32
        )  # the last of 32 cells is at pixel 124
    weights["middle.broadcast.k.0.bias"][:5] = 1
    weights["head.centre.bias"].fill_((62 + 0.5) / 128)  # the 32 cells are at pixels 0 to 124
    weights["head.classes.bias"][7] = 2
    model.load_state_dict(weights)
    return model


@cache
def digit_weights(model: str = "scaled-mnist/bcn") -> Path:
    """A weights file: the model that knows where ink is and calls all of it a seven, or one that knows nothing."""
    torch.manual_seed(0)
    network = ink_extent() if model == "scaled-mnist/bcn" else create_model(model)
    recipe = find_recipe(f"table1/{model.split('/')[1]}", "smoke")
    nothing = np.zeros((0, 1, 128, 128), np.uint8)
    dataset = ArrayDataset("scaled-mnist-v1", "train", nothing, np.zeros(0), tuple("0123456789"))
    path = _folder() / f"{model.replace('/', '-')}.safetensors"
    description = describe_weights(recipe, dataset, arguments=dict(recipe.arguments), seed=0, epoch=1)
    write_weights(path, network.state_dict(), description)
    return path


@cache
def word_weights(model: str = "clevr/multirn") -> Path:
    """A weights file of a model that reads words, knows five of them, and nothing else."""
    torch.manual_seed(0)
    words = ("how", "many", "cubes", "are", "there")
    arguments = {"vocab_size": len(words) + 2, "num_answers": 3}
    description = {
        "model": model,
        "arguments": arguments,
        "data": "clevr-like-v1",
        "localise": False,
        "preprocessing": {"mean": [0.5], "std": [0.5]},
        "answers": ["yes", "no", "2"],
        "kinds": [],
        "recipe": "own",
        "scale": "smoke",
        "seed": 0,
        "epoch": 1,
        "words": list(words),
    }
    path = _folder() / f"{model.replace('/', '-')}.safetensors"
    write_weights(path, create_model(model, **arguments).state_dict(), description)
    return path
