"""A model as it was trained: from a run's directory, or from a weights file that says what it is."""

from pathlib import Path
from typing import Any

from torch import nn

from bcn.engine.checkpoint import load_weights
from bcn.engine.run import find_run
from bcn.errors import BcnError
from bcn.models.registry import create_model


def load_trained(path: Path) -> tuple[nn.Module, dict[str, Any]]:
    """The model with its weights, ready to be asked, and the description that stands in the file.

    Of a run, the best weights by validation; where nothing was held out, the last.
    """
    if not path.exists():
        raise BcnError(f"{path} does not exist; give a run's directory or a .safetensors file")
    if path.is_dir():
        run = find_run(path).path
        files = [run / f"{name}.safetensors" for name in ("best", "last")]
        path = next((file for file in files if file.exists()), files[0])
        if not path.exists():
            raise BcnError(f"{run} has no weights yet; train it for an epoch first")
    weights, description = load_weights(path)
    if "model" not in description:
        raise BcnError(f"{path} does not say which model it belongs to; give weights that `bcn train` wrote")
    model = create_model(description["model"], **description["arguments"])
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        reason = str(error).split("\n")[1].strip()
        raise BcnError(f"{path} does not fit {description['model']}: {reason} Use the version that wrote it") from error
    return model.eval(), description
