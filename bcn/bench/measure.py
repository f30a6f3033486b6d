"""Timings that can be compared: everything alternately in one process, several rounds, median and spread.

Machines are noisy, so a speed is never one number: it is a ratio of two things that were measured by turns.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple

import torch

from bcn.engine.machine import commit, machine, versions


class Timing(NamedTuple):
    """Seconds of one call."""

    median: float
    low: float
    """the first quartile of the rounds"""
    high: float
    """the third quartile"""
    rounds: int


def alternate(cases: dict[str, Callable[[], object]], *, rounds: int, seconds: float) -> dict[str, Timing]:
    """The time of a call of each case: in every round each case runs for about so many seconds, one after the other."""
    calls = {}
    for name, case in cases.items():
        case()
        calls[name] = max(1, round(seconds / _time(case, 1)))
    times: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, case in cases.items():
            times[name].append(_time(case, calls[name]))
    return {name: Timing(statistics.median(each), *_quartiles(each), rounds) for name, each in times.items()}


def _time(case: Callable[[], object], calls: int) -> float:
    began = time.perf_counter()
    for _ in range(calls):
        case()
    return (time.perf_counter() - began) / calls


def _quartiles(times: list[float]) -> tuple[float, float]:
    if len(times) == 1:
        return times[0], times[0]
    first, _, third = statistics.quantiles(times, n=4, method="inclusive")
    return first, third


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def peak_memory(job: str, *arguments: str) -> int | None:
    """The bytes that a job of `bcn.bench.jobs` needs at its peak, above those of the idle process; None but on Linux.

    Each in a new process, which has run the job at its smallest, so that libraries are loaded; the peak of that is
    forgotten before the job begins.
    """
    if not sys.platform.startswith("linux"):
        return None
    code = (
        "import sys, ctypes, torch; from bcn.bench.jobs import JOBS; torch.set_num_threads(1);"
        "make = JOBS[sys.argv[1]]; make(*('1' if each.isdigit() else each for each in sys.argv[2:]))();"
        "job = make(*sys.argv[2:]); ctypes.CDLL(None).malloc_trim(0);"
        "status = lambda key: int(open('/proc/self/status').read().split(key)[1].split()[1]);"
        "open('/proc/self/clear_refs', 'w').write('5'); idle = status('VmRSS');"
        "job(); job(); print(1024 * (status('VmHWM') - idle))"
    )
    done = subprocess.run([sys.executable, "-c", code, job, *arguments], capture_output=True, text=True, check=True)
    return int(done.stdout)


def record(benchmark: str, figures: dict[str, Any]) -> dict[str, Any]:
    """What was measured, with everything that a reader needs to judge it."""
    return {
        "benchmark": benchmark,
        "figures": figures,
        "commit": commit(),
        "versions": versions(),
        "machine": machine(),
        "load": round(os.getloadavg()[0], 2),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
