"""A run on disk: a directory named after recipe, scale, seed and a hash of all that determines the run.

manifest.json (what was started), metrics.jsonl (what happened, see event_log.py), checkpoint/ (see checkpoint.py),
best.safetensors (best by validation), last.safetensors and record.json (at the end).
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from bcn.errors import BcnError
from bcn.io import locked, make_directory, read_record, remove_temporaries, write_record
from bcn.training.environment import commit, machine, versions
from bcn.training.event_log import EventLog
from bcn.training.recipe import Recipe, fingerprint, from_json

CURVE_POINTS = 60
"""of a record's curve: enough to see it, few enough to commit"""
MANIFEST = ("recipe", "seed", "overridden", "overrides", "threads", "ranks")
RECORD = ("run", "metrics", "ranks", "seconds", "cpu_seconds", "best_epoch", "commit")
"""required keys of a manifest and of a record"""
NOT_A_RECORD = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError)
"""what reading a record raises whose values are of other types than a run writes"""


def run_id(recipe: Recipe, seed: int) -> str:
    """The directory's name: the same id resumes or reuses."""
    return f"{recipe.name.replace('/', '-')}-{recipe.scale}-{seed}-{fingerprint(recipe)}"


@dataclass(frozen=True)
class Run:
    path: Path
    manifest: dict[str, Any]

    @property
    def recipe(self) -> Recipe:
        return from_json(self.manifest["recipe"])

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoint"

    def record(self) -> dict[str, Any] | None:
        """The record of a finished run; None for one that is not finished."""
        path, remedy = self.path / "record.json", "remove it to have it written again"
        if not path.exists():
            return None
        record = _read(path, RECORD, remedy)
        try:
            check_counts(record["metrics"])
            if not math.isfinite(record["seconds"]):
                raise ValueError(f"it took {record['seconds']} seconds")
        except NOT_A_RECORD as error:
            raise BcnError(f"{path} contradicts itself: {error}; {remedy}") from error
        return record

    def check_data(self, checksums: dict[str, str]) -> None:
        """Refuse other data than the run began with."""
        began = self.manifest.setdefault("data", checksums)
        if began != checksums:
            changed = ", ".join(name for name in checksums if began.get(name) != checksums[name])
            raise BcnError(
                f"{self.path} began with other data ({changed}): give the data that it began with, or another "
                "directory with --runs"
            )

    @cached_property
    def log(self) -> EventLog:
        """metrics.jsonl"""
        return EventLog(self.path / "metrics.jsonl")

    def curve(self) -> list[dict[str, Any]]:
        """The epochs of a run, evenly subsampled; the last is always among them."""
        epochs = [event for event in self.log.events() if event["event"] == "epoch"]
        every = -(-len(epochs) // CURVE_POINTS)
        kept = epochs[::-1][:: max(1, every)][::-1]
        return [{key: value for key, value in event.items() if key != "event"} for event in kept]


def find_started(recipe: Recipe, *, seed: int, runs: Path) -> Run | None:
    """The run of this recipe and seed, if it was started before."""
    path = runs / run_id(recipe, seed)
    try:
        if not (path / "manifest.json").exists():
            return None
    except OSError as error:
        raise BcnError(f"cannot read {path}: {error.strerror}; choose another directory with --runs") from error
    run = find_run(path)
    if fingerprint(run.recipe) != fingerprint(recipe) or run.manifest["seed"] != seed:
        raise BcnError(f"{path} holds a run of another recipe or seed; move it away, or choose another --runs")
    return run


@contextmanager
def open_run(
    recipe: Recipe, *, seed: int, runs: Path, data: dict[str, str], overrides: Sequence[str], now: dict[str, Any]
) -> Iterator[Run]:
    """The run's directory, made or found again, and locked against a second process that would train the same run.

    Args:
        data: the checksums of its splits.
        overrides: the assignments of --set that changed the recipe.
        now: threads, ranks and device.
    """
    path = runs / run_id(recipe, seed)
    try:
        make_directory(path)
    except OSError as error:
        raise BcnError(f"cannot write {path}: {error.strerror}; choose another directory with --runs") from error
    with locked(path / ".lock", busy=f"another process is training {path}; wait for it, or stop it"):
        for directory in (path, path / "checkpoint"):
            remove_temporaries(directory)  # of processes that were killed
        run = find_started(recipe, seed=seed, runs=runs)
        if run is None:
            started = {
                "run": path.name,
                "recipe": asdict(recipe),
                "seed": seed,
                "overridden": bool(overrides),
                "overrides": list(overrides),
                "data": data,
                **now,
                "versions": versions(),
                "commit": commit(),
                "machine": machine(),
            }
            try:
                write_record(path / "manifest.json", started)
            except BcnError:
                with suppress(OSError):  # where there is more in it than what was just made
                    (path / ".lock").unlink()
                    path.rmdir()
                raise
            run = Run(path, started)
        run.check_data(data)
        yield run


def find_run(path: Path) -> Run:
    """The run in a directory."""
    if not (path / "manifest.json").is_file():
        raise BcnError(f"{path} is not the directory of a run: it has no manifest.json")
    return Run(path, _read(path / "manifest.json", MANIFEST, "move the run's directory away to start again"))


def check_counts(metrics: dict[str, dict[str, Any]]) -> None:
    """Raise ValueError, or another of NOT_A_RECORD, where accuracy is not what was counted.

    Args:
        metrics: by test set, what `compute_metrics` of metrics.py gave.
    """
    for test_set, parts in metrics.items():
        for name, part in parts.items():
            if not isinstance(part, dict):
                if not math.isfinite(part):  # a localisation error
                    raise ValueError(f"{name} of {test_set} is {part}")
                continue
            correct, total, accuracy = part["correct"], part["total"], part["accuracy"]
            low, high = part["interval"] if total else (0, 1)
            if not 0 <= low <= high <= 1:
                raise ValueError(f"{name} of {test_set} has the interval {low} to {high}")
            if not 0 <= correct <= total or (total and abs(accuracy - correct / total) > 1e-6):
                raise ValueError(f"{name} of {test_set} has accuracy {accuracy} for {correct} of {total}")


def _read(path: Path, needed: Sequence[str], remedy: str) -> dict[str, Any]:
    value = read_record(path, remedy)
    if missing := [name for name in needed if name not in value]:
        raise BcnError(f"{path} lacks {', '.join(missing)}; {remedy}")
    return value
