"""Where a command computes: `--device`, else BCN_DEVICE, else a CUDA GPU where there is one, else the CPU."""

import os
from typing import Any

import torch

from bcn.errors import BcnError

CPU = torch.device("cpu")
ACCEPTED = "accepted are auto, cpu, cuda, cuda:1 and so on, and mps"


def find_device(name: str | None = None, *, local_rank: int | None = None) -> torch.device:
    """The device of a name; None is what BCN_DEVICE says, or "auto".

    "auto" takes a CUDA GPU or the CPU. Apple's GPUs have to be named: nobody has run the package on one yet.

    Args:
        local_rank: of this process among those that train together on this machine; each takes a GPU of its own.

    >>> find_device("cpu")
    device(type='cpu')
    """
    asked = name or os.environ.get("BCN_DEVICE") or "auto"
    if asked == "auto":
        asked = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(asked)
    except RuntimeError:
        raise BcnError(f"device {asked!r} is unknown: {ACCEPTED}") from None
    if device.type == "cpu":
        return CPU
    module: Any = getattr(torch, device.type, None)
    backend: Any = torch.backends.mps if device.type == "mps" else module
    if not hasattr(backend, "is_available") or not backend.is_available():
        raise BcnError(
            f"device {asked!r} was asked for, and torch {torch.__version__} finds none here: {ACCEPTED}; give "
            "--device cpu, or install a build of torch for this GPU"
        )
    if local_rank is not None and device.index is not None:
        raise BcnError(f"device {asked!r} cannot serve several processes: give {device.type}, and each takes its own")
    index, count = device.index if device.index is not None else local_rank or 0, module.device_count()
    if index >= count:
        raise BcnError(
            f"{device.type}:{index} does not exist: this machine has {count}, {device.type}:0 to "
            f"{device.type}:{count - 1}; start one process for each at most"
        )
    return torch.device(device.type, index)


def sum_dtype(device: torch.device) -> torch.dtype:
    """Of sums over many steps or images: float64, which Apple's GPUs do not have."""
    return torch.float32 if device.type == "mps" else torch.float64
