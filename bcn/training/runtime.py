"""How a run computes, besides what its recipe says: precision, deterministic operators, compilation, data on a GPU."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from bcn.errors import BcnError
from bcn.training.recipe import Precision

SHARE = 4
"""images are kept on a GPU if they take at most this part of its free memory: a quarter"""


@dataclass(frozen=True)
class Runtime:
    device: str | None = None
    """where to compute, see `find_device`"""
    deterministic: bool = False
    """whether operators that may add up in another order each time are replaced, or refused"""
    compile: bool = False
    """whether the loss of a step goes through torch.compile"""
    data_on_device: str = "auto"
    """whether training images are kept on the device; "auto" is where they fit, others are "yes" and "no" """

    def describe(self, device: torch.device) -> dict[str, Any]:
        """For a manifest and a record."""
        return {"device": str(device), "deterministic": self.deterministic, "compile": self.compile}

    def compiled(self, loss: nn.Module) -> nn.Module:
        return torch.compile(loss) if self.compile else loss  # type: ignore[return-value]

    def image_limit(self, device: torch.device) -> int:
        """The bytes that training images may take on a device."""
        if self.data_on_device not in ("auto", "yes", "no"):
            raise BcnError(f"--data-on-device {self.data_on_device}: accepted are auto, yes and no")
        if device.type == "cpu" or self.data_on_device == "no":
            return 0
        if self.data_on_device == "yes":
            return 2**62
        return torch.cuda.mem_get_info(device)[0] // SHARE if device.type == "cuda" else 0


def autocast(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """Around the loss of a step: matrix products and convolutions in bfloat16, where the recipe says so."""
    return torch.autocast(device.type, torch.bfloat16) if precision == "bf16" else nullcontext()


@contextmanager
def arithmetic(precision: Precision, *, deterministic: bool) -> Iterator[None]:
    """The settings of torch for a run, and those of before after it.

    "float32" is float32: torch's default lets cuDNN round the factors of convolutions to 10 bits (TF32).
    """
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, cudnn.allow_tf32, torch.are_deterministic_algorithms_enabled()
    matmul.allow_tf32 = cudnn.allow_tf32 = precision != "float32"
    if deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when CUDA starts
        torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        matmul.allow_tf32, cudnn.allow_tf32 = before[:2]
        torch.use_deterministic_algorithms(before[2])
