"""Weights files: safetensors with a description of the model, enough to build it and to use it, and a checksum.

The one metadata entry, `bcn`, is JSON: the description, and under `checksum` the SHA-256 of it and of every tensor.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from bcn.errors import BcnError
from bcn.io import atomic_write
from bcn.models.cost import on_meta
from bcn.models.registry import create_model
from bcn.models.relation_model import RelationModel
from bcn.training.description import check_description, check_outputs
from bcn.training.run import find_run

CHECKSUM = "checksum"
SAVED = "model.safetensors"
"""the weights in a folder that `save_pretrained` wrote"""


def write_weights(path: Path, weights: dict[str, Tensor], description: dict[str, Any]) -> str:
    """Write a weights file and return its SHA-256. One metadata key keeps the file byte-stable from save to save."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
    told = description | {CHECKSUM: _checksum(tensors, description)}
    content = safetensors.torch.save(tensors, metadata={"bcn": json.dumps(told, sort_keys=True)})
    with atomic_write(path) as temporary:
        temporary.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def read_weights(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The weights of a file, and its description (empty for a file that is not ours); damage is refused."""
    with _open(path) as file:
        description, checksum = _metadata(path, file)
        return _read_tensors(path, file, description, checksum), description


def find_weights(run: Path) -> Path:
    """The best weights of a run by validation; where nothing was held out, the last."""
    for name in ("best", "last"):
        if (file := run / f"{name}.safetensors").exists():
            return file
    raise BcnError(f"{run} has no weights yet; train it for an epoch first")


def read_model(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The weights of a trained model, and its description; what is kept in float16 is float32 again.

    Everything is checked before memory is taken for the model: the description, the shapes of the tensors against those
    of the model on the meta device, the checksum, and that all values are finite.
    """
    if not path.exists():
        raise BcnError(f"{path} does not exist; give a run's directory or a .safetensors file")
    with _open(path) as file:
        written, checksum = _metadata(path, file)
        description = check_description(path, written)
        _check_shapes(path, file, description)
        weights = _read_tensors(path, file, written, checksum)
    weights = {name: tensor.float() if tensor.dtype == torch.float16 else tensor for name, tensor in weights.items()}
    for name, tensor in weights.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise BcnError(f"{path}: {name} has values that are not finite numbers; use another copy of it")
    return weights, description


def load_model(path: Path) -> tuple[nn.Module, dict[str, Any]]:
    """A trained model in evaluation mode, and its description; all of it is checked, and it answers once.

    Args:
        path: a run's directory, a folder that `save_pretrained` wrote, or a weights file.
    """
    if (path / SAVED).is_file():
        path /= SAVED
    elif path.is_dir():
        path = find_weights(find_run(path).path)
    weights, description = read_model(path)
    model = create_model(description["model"], **description["arguments"])
    model.load_state_dict(weights)
    for part in model.modules():
        if isinstance(part, RelationModel):  # the order of the maps that it sees: no copy of the weights in every call
            part.encoder.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    check_outputs(path, model.eval(), description)
    return model, description


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except (SafetensorError, OSError, ValueError) as error:
        raise BcnError(f"{path} is not a whole safetensors file ({error}); use another copy of it") from error


def _metadata(path: Path, file: Any) -> tuple[dict[str, Any], str | None]:
    """The description, and the checksum, which files of versions before 0.2 do not have."""
    try:
        description = json.loads((file.metadata() or {}).get("bcn", "{}"))
    except RecursionError as error:
        raise BcnError(f"{path} has metadata that nest too deeply; use another copy of it") from error
    if not isinstance(description, dict):
        raise BcnError(f"{path} does not say which model it belongs to; give weights that `bcn train` wrote")
    return description, description.pop(CHECKSUM, None)


def build_on_meta(path: Path, description: dict[str, Any]) -> nn.Module:
    """The model that a description from this file names, without storage: nothing is allocated for one that lies."""
    try:
        return on_meta(description["model"], **description["arguments"])
    except BcnError as error:
        raise BcnError(f"{path}: {error}") from error
    except RuntimeError as error:
        raise BcnError(
            f"{path} has arguments that no model can be built with; give weights that `bcn train` wrote"
        ) from error


def _check_shapes(path: Path, file: Any, description: dict[str, Any]) -> None:
    """Refuse tensors that are not the model's, before any is read; the model has no storage."""
    model = build_on_meta(path, description)
    expected = {name: (list(tensor.shape), tensor.dtype) for name, tensor in model.state_dict().items()}
    halves = {name: (shape, torch.float16) for name, (shape, dtype) in expected.items() if dtype == torch.float32}
    given = {}
    for name in file.keys():  # noqa: SIM118 (not a mapping)
        part = file.get_slice(name)
        given[name] = part.get_shape(), _DTYPES.get(part.get_dtype())
    for name in sorted(expected.keys() | given.keys()):
        if given.get(name) not in (expected.get(name), halves.get(name, expected.get(name))):
            raise BcnError(
                f"{path} does not fit {description['model']}: {name} is {_shown(given.get(name))} instead of "
                f"{_shown(expected.get(name))}; use the version that wrote it"
            )


_DTYPES = {"F32": torch.float32, "F16": torch.float16, "I64": torch.int64}
"""those of our models and of weights that are kept in half of the bytes, by their names in safetensors"""


def _shown(tensor: tuple[list[int], torch.dtype | None] | None) -> str:
    if tensor is None:
        return "absent"
    shape, dtype = tensor
    return f"{str(dtype).removeprefix('torch.')} {tuple(shape)}"


def _read_tensors(path: Path, file: Any, description: dict[str, Any], checksum: str | None) -> dict[str, Tensor]:
    weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    if checksum is not None and checksum != _checksum(weights, description):
        raise BcnError(f"{path} is damaged: its checksum is wrong; use another copy of it")
    return weights


def _checksum(weights: dict[str, Tensor], description: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
    for name, tensor in sorted(weights.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
