"""Checkpoints on disk, written so that a crash at any moment leaves a whole one behind.

A checkpoint is three files: step-N.safetensors (weights), step-N.pt (everything else, loadable with weights_only=True)
and step-N.json, written last, with the checksums of the other two: where it is missing or disagrees, N does not count.
A second one of the same step is step-N-0001.
"""

import hashlib
import io
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from bcn.errors import BcnError
from bcn.io import atomic_write, write_json
from bcn.training.progress import say
from bcn.training.weights import write_weights

KEEP = 2
SCRIPTED = "constants.pkl"
"""what a TorchScript archive has, over which torch gives the same advice in another exception"""


def save_checkpoint(folder: Path, step: int, weights: dict[str, Tensor], state: dict[str, Any]) -> None:
    """Add checkpoint `step` to a folder and remove all but the last two, also what a crash or a full disk left over."""
    name = folder / f"step-{step:08d}"
    if there := [path.name for path in list_checkpoints(folder) if path.name.startswith(name.name)]:
        # written beside the whole one of the same step, not over it
        last = there[-1].removeprefix(name.name).lstrip("-")
        name = folder / f"{name.name}-{int(last or 0) + 1:04d}"
    try:
        checksums = {
            "step": step,
            "weights": write_weights(name.with_suffix(".safetensors"), weights, {}),
            "state": _write_state(name.with_suffix(".pt"), state),
        }
        write_json(name.with_suffix(".json"), checksums)
    finally:
        kept = list_checkpoints(folder)[-KEEP:]
        for path in (*folder.glob("step-*"), *folder.glob(".step-*")):
            if path.with_suffix("") not in kept:
                path.unlink(missing_ok=True)


def load_checkpoint(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """The newest whole checkpoint, or None where there is none; a damaged one is named and passed over."""
    names = list_checkpoints(folder)
    for name in reversed(names):
        try:
            return read_checkpoint(name)
        except BcnError as error:
            say(f"{error}; trying the one before it")
    if names:
        raise BcnError(f"every checkpoint in {folder} is damaged; remove that directory to train from the start")
    return None


def list_checkpoints(folder: Path) -> list[Path]:
    """The checkpoints of a folder, without suffix, from the oldest to the newest."""
    return sorted(path.with_suffix("") for path in folder.glob("step-*.json"))


def read_checkpoint(name: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """One of `list_checkpoints`; a damaged one is refused."""
    try:
        checksums = json.loads(name.with_suffix(".json").read_text(encoding="utf-8"))
        content = {suffix: name.with_suffix(suffix).read_bytes() for suffix in (".safetensors", ".pt")}
        for suffix, part in ((".safetensors", "weights"), (".pt", "state")):
            if hashlib.sha256(content[suffix]).hexdigest() != checksums[part]:
                raise ValueError(f"the checksum of {name.name}{suffix} is wrong")
        return safetensors.torch.load(content[".safetensors"]), _read_state(content[".pt"])
    except pickle.UnpicklingError as error:  # not in torch's words, which advise to load it all the same
        raise BcnError(f"checkpoint {name} holds more than tensors and plain values, and is refused") from error
    except Exception as error:  # over a damaged pickle torch stumbles in many ways
        raise BcnError(f"checkpoint {name} is damaged ({error})") from error


def _read_state(content: bytes) -> dict[str, Any]:
    """What `_write_state` wrote: a zip archive, which torch.save does not compress, and torch.load would unpack."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
        names = [entry.filename.rpartition("/")[2] for entry in archive.infolist()]
    if size > len(content):
        raise ValueError(f"its state unpacks from {len(content):,} to {size:,} bytes")
    if SCRIPTED in names:
        raise pickle.UnpicklingError("a TorchScript archive")
    state: dict[str, Any] = torch.load(io.BytesIO(content), weights_only=True, map_location="cpu")
    return state


def _write_state(path: Path, state: dict[str, Any]) -> str:
    buffer = io.BytesIO()
    torch.save(state, buffer)
    with atomic_write(path) as temporary:
        temporary.write_bytes(buffer.getvalue())
    return hashlib.sha256(buffer.getvalue()).hexdigest()
