"""Training with freed memory kept, as `bcn train` does, or returned to the system, as is usual; by turns.

The allocator is set once for a process, so each measurement has its own:
`python -m bcn.bench.allocator kept | returned`.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

from bcn.bench.jobs import training
from bcn.bench.measure import Timing
from bcn.training.environment import keep_memory

STEPS = 5


def bench_allocator(rounds: int, say: Callable[[str], None]) -> dict[str, Any]:
    say("freed memory kept and returned")
    pairs = [(_in_a_process("kept"), _in_a_process("returned")) for _ in range(rounds)]
    kept, returned = (Timing(seconds) for seconds in zip(*pairs, strict=True))
    return {
        "kept": kept.milliseconds(),
        "returned": returned.milliseconds(),
        "kept / returned": kept.ratio(returned),
    }


def _in_a_process(policy: str) -> float:
    command = [sys.executable, "-m", "bcn.bench.allocator", policy]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measure(policy: str) -> float:
    """Seconds of a training step of `scaled-mnist/bcn` in this process."""
    torch.set_num_threads(1)
    if policy == "kept":
        keep_memory()
    step = training("scaled-mnist/bcn", "ours", 64, 1)
    step()
    step()
    began = time.perf_counter()
    for _ in range(STEPS):
        step()
    return (time.perf_counter() - began) / STEPS


if __name__ == "__main__":
    print(measure(sys.argv[1]))
