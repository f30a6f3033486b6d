"""A model as it was trained: from a run's directory, or from a weights file that says what it is."""

from pathlib import Path
from typing import Any

from torch import nn

from bcn.errors import BcnError
from bcn.models.registry import create_model
from bcn.training.checkpoint import load_weights
from bcn.training.run import find_run


def load_trained(path: Path) -> tuple[nn.Module, dict[str, Any]]:
    """The model with its weights, ready to be asked, and the description that stands in the file."""
    if not path.exists():
        raise BcnError(f"{path} does not exist; give a run's directory or a .safetensors file")
    if path.is_dir():
        path = weights_file(find_run(path).path)
    weights, description = load_weights(path)
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


def weights_file(run: Path) -> Path:
    """The best weights of a run by validation; where nothing was held out, the last."""
    for name in ("best", "last"):
        if (file := run / f"{name}.safetensors").exists():
            return file
    raise BcnError(f"{run} has no weights yet; train it for an epoch first")
