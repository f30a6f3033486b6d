"""The environment of a run: threads, versions, commit, processor, allocator."""

import ctypes
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bcn import __version__

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h


def keep_memory() -> bool:
    """Let glibc keep freed blocks of any size: else every large tensor is made of fresh pages, zeroed by the kernel."""
    if not sys.platform.startswith("linux") or platform.libc_ver()[0] != "glibc":
        return False
    libc = ctypes.CDLL(None)
    return bool(libc.mallopt(M_MMAP_THRESHOLD, 1 << 30) and libc.mallopt(M_TRIM_THRESHOLD, (1 << 31) - 1))


@contextmanager
def flush_denormals() -> Iterator[None]:
    """Round denormal numbers to zero: weight decay shrinks unused weights to them, and products are then far slower."""
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def default_threads(local_ranks: int = 1) -> int:
    """OMP_NUM_THREADS for a process that runs alone, else the cores divided by the ranks on this machine."""
    # torchrun sets the variable by itself, so that under it the variable does not say what the user wants.
    wanted = os.environ.get("OMP_NUM_THREADS", "") if local_ranks == 1 else ""
    return int(wanted) if wanted.isdigit() and int(wanted) > 0 else max(1, cores() // local_ranks)


def versions() -> dict[str, str]:
    return {
        "bcn": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }


def commit() -> dict[str, Any] | None:
    """The commit of the checkout that the package runs from, and whether tracked files differ; None outside git."""
    package = Path(__file__).parents[1]

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(package), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "__init__.py")  # a checkout of something else around an installed package
        return {"id": git("rev-parse", "HEAD"), "dirty": bool(git("status", "--porcelain", "-uno", "--", "."))}
    except (OSError, subprocess.SubprocessError):
        return None


def machine() -> dict[str, Any]:
    """The processor's name and the cores that may be used; the GPU's name where there is one."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.partition(":")[2].strip()
            for line in info.read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        ]
        name = names[0] if names else name
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {"processor": name, "cores": cores(), "system": platform.system(), "gpu": gpu}
