"""A pytest plugin: the loops in C from libraries of `BCN_SANITISED_KERNELS`, compiled with the sanitizers."""

import ctypes
import os
from functools import cache
from pathlib import Path

from bcn.layers.fused import native


@cache
def load_sanitised(name: str) -> ctypes.CDLL:
    return ctypes.CDLL(str(Path(os.environ["BCN_SANITISED_KERNELS"]) / f"{name}.so"))


native.load_library = load_sanitised
