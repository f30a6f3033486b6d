"""The peak memory of a job, measured in a process of its own: `python -m bcn.bench.memory JOB ARGUMENT ...`."""

import ctypes
import subprocess
import sys
from pathlib import Path

import torch

from bcn.bench.jobs import JOBS


def peak_memory(job: str, *arguments: str) -> int | None:
    """The bytes that a job needs at its peak, above those of the idle process; None but on Linux.

    Args:
        job: a key of `bcn.bench.jobs.JOBS`
        arguments: those of the job, as text
    """
    if not sys.platform.startswith("linux"):
        return None
    command = [sys.executable, "-m", "bcn.bench.memory", job, *arguments]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measure(job: str, *arguments: str) -> int:
    """Run the job twice here, after a run at its smallest that loads the libraries and whose peak is reset."""
    torch.set_num_threads(1)
    JOBS[job](*("1" if argument.isdigit() else argument for argument in arguments))()
    run = JOBS[job](*arguments)
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # resets VmHWM
    idle = _status("VmRSS")
    run()
    run()
    return _status("VmHWM") - idle


def _status(key: str) -> int:
    """Bytes, from the kernel's count in kilobytes."""
    return 1024 * int(Path("/proc/self/status").read_text(encoding="ascii").split(key)[1].split()[1])


if __name__ == "__main__":
    print(measure(*sys.argv[1:]))
