"""Timings that can be compared: everything alternately in one process, several rounds, median and spread.

Machines are noisy, so a speed is never one number: it is a ratio of two things that were measured by turns.
"""

import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple, Self

import torch

from bcn.training.environment import commit, machine, versions


class Spread(NamedTuple):
    """The median and quartiles of what was measured once in each round."""

    median: float
    low: float
    """the first quartile"""
    high: float
    """the third quartile"""

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        first, _, third = statistics.quantiles(values, n=4, method="inclusive")
        return cls(statistics.median(values), first, third)


class Timing(NamedTuple):
    """Seconds of one call, in each round."""

    rounds: tuple[float, ...]
    cpu_rounds: tuple[float, ...] = ()
    """in CPU time of the calling thread"""

    def of_cpu(self) -> "Timing":
        """The same in CPU time of the calling thread: on a busy machine, about what it would take alone."""
        return Timing(self.cpu_rounds)

    @property
    def median(self) -> float:
        return statistics.median(self.rounds)

    def milliseconds(self) -> dict[str, float]:
        return Spread.of([1e3 * each for each in self.rounds])._asdict()

    def per_second(self, count: float) -> dict[str, float]:
        """How many a second, where a call does so many."""
        return Spread.of([count / each for each in self.rounds])._asdict()

    def ratio(self, other: "Timing", scale: float = 1.0) -> dict[str, float]:
        """Other by this, round by round: what is slow for a while is slow for both."""
        return Spread.of([scale * b / a for a, b in zip(self.rounds, other.rounds, strict=True)])._asdict()


def alternate(cases: dict[str, Callable[[], object]], *, rounds: int, seconds: float) -> dict[str, Timing]:
    """The time of a call of each case: in every round each case runs for about so many seconds, one after the other."""
    calls = {}
    for name, case in cases.items():
        case()
        calls[name] = max(1, round(seconds / _time(case, 1)[0]))
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, case in cases.items():
            times[name].append(_time(case, calls[name]))
    return {name: Timing(*zip(*each, strict=True)) for name, each in times.items()}


def _time(case: Callable[[], object], calls: int) -> tuple[float, float]:
    """Seconds of a call, and those of them in which this thread ran."""
    began, cpu_began = time.perf_counter(), time.thread_time()
    for _ in range(calls):
        case()
    return (time.perf_counter() - began) / calls, (time.thread_time() - cpu_began) / calls


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def record(benchmark: str, measurements: dict[str, Any]) -> dict[str, Any]:
    """What was measured, with everything that a reader needs to judge it."""
    return {
        "benchmark": benchmark,
        "measurements": measurements,
        "commit": commit(),
        "versions": versions(),
        "machine": machine(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
