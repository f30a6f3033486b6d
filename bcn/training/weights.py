"""Weights files: safetensors with a description of the model, enough to build it and to use it."""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from bcn.data.dataset import Dataset
from bcn.errors import BcnError
from bcn.io import atomic_write
from bcn.models.registry import create_model
from bcn.training.recipe import Recipe
from bcn.training.run import find_run


def describe_weights(
    recipe: Recipe, dataset: Dataset, *, arguments: dict[str, Any], seed: int, epoch: int | None
) -> dict[str, Any]:
    """What a weights file says of itself: how to build the model, prepare its inputs and name its answers.

    Args:
        dataset: the training split.
        arguments: those of create_model, as `Splits.model_arguments` gives them.
    """
    words = {"words": list(dataset.vocabulary.words)} if dataset.vocabulary is not None else {}
    return words | {
        "model": recipe.model,
        "arguments": arguments,
        "data": recipe.data.name,
        "preprocessing": asdict(dataset.preprocessing),
        "answers": list(dataset.answers),
        "kinds": list(dataset.kinds),
        "localise": recipe.localise,
        "recipe": recipe.name,
        "scale": recipe.scale,
        "seed": seed,
        "epoch": epoch,
    }


def write_weights(path: Path, weights: dict[str, Tensor], description: dict[str, Any]) -> str:
    """Write a weights file and return its SHA-256. One metadata key keeps the file byte-stable from save to save."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
    content = safetensors.torch.save(tensors, metadata={"bcn": json.dumps(description, sort_keys=True)})
    with atomic_write(path) as temporary:
        temporary.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def read_weights(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The weights of a file, and its description (empty for a file that is not ours)."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
        return weights, json.loads(metadata.get("bcn", "{}"))
    except (SafetensorError, OSError, ValueError) as error:
        raise BcnError(f"{path} is not a whole safetensors file ({error}); use another copy of it") from error


def find_weights(run: Path) -> Path:
    """The best weights of a run by validation; where nothing was held out, the last."""
    for name in ("best", "last"):
        if (file := run / f"{name}.safetensors").exists():
            return file
    raise BcnError(f"{run} has no weights yet; train it for an epoch first")


def load_model(path: Path) -> tuple[nn.Module, dict[str, Any]]:
    """A trained model in evaluation mode, and its description.

    Args:
        path: a run's directory, or a weights file.
    """
    if not path.exists():
        raise BcnError(f"{path} does not exist; give a run's directory or a .safetensors file")
    if path.is_dir():
        path = find_weights(find_run(path).path)
    weights, description = read_weights(path)
    if (
        not isinstance(description, dict)
        or not isinstance(description.get("arguments"), dict)
        or "model" not in description
    ):
        raise BcnError(f"{path} does not say which model it belongs to; give weights that `bcn train` wrote")
    model = create_model(description["model"], **description["arguments"])
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        reason = str(error).split("\n")[1].strip()
        raise BcnError(f"{path} does not fit {description['model']}: {reason} Use the version that wrote it") from error
    return model.eval(), description
