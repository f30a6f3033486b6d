"""What the runs of a directory are doing, from their files: state, progress, best metric, time left."""

import math
import time
from pathlib import Path
from typing import Any, NamedTuple

from bcn.errors import BcnError
from bcn.training.run import NOT_A_RECORD, Run, find_run

SILENT_MINUTES = 10.0
"""without a line of metrics.jsonl, after which a run is taken to be stopped"""


class RunSummary(NamedTuple):
    name: str
    state: str
    """finished, training, stopped or damaged"""
    epochs: str
    """done and planned: "12/40" """
    metric: str
    """the best accuracy in validation, or the localisation error beside it; of a finished run, the test accuracy"""
    seconds_left: float | None
    """None where nothing is left, or is not known yet"""


def summarise_runs(runs: Path) -> list[RunSummary]:
    """The runs of a directory, the newest first."""
    if not runs.is_dir():
        raise BcnError(f"{runs} is not a directory: give the one that holds the directories of runs with --runs")
    found = [path for path in runs.iterdir() if (path / "manifest.json").is_file()]
    return [summarise(path) for path in sorted(found, key=lambda path: -(path / "manifest.json").stat().st_mtime)]


def summarise(path: Path) -> RunSummary:
    """One run; a damaged one is named, for `bcn doctor` to say more."""
    try:
        run = find_run(path)
        record, epochs = run.record(), run.recipe.epochs
        if record is not None:
            metric = f"{100 * record['metrics']['test']['all']['accuracy']:.1f} % {record.get('test_split', 'test')}"
            done = record.get("stopped_after", epochs)
            return RunSummary(path.name, "finished", f"{done}/{epochs}", metric, None)
        return _unfinished(run, epochs)
    except (BcnError, OSError, *NOT_A_RECORD) as error:
        return RunSummary(path.name, "damaged", "-", str(error)[:60], None)


def _unfinished(run: Run, epochs: int) -> RunSummary:
    events = run.log.events() if run.log.path.exists() else []
    finished = [event for event in events if event["event"] == "epoch"]
    minutes_ago = (time.time() - run.log.path.stat().st_mtime) / 60 if events else float("inf")
    best: Any = max((event["accuracy"] for event in finished if "accuracy" in event), default=None)
    left = None
    if finished:
        each = 60 * finished[-1]["minutes"] / finished[-1]["epoch"]
        left = each * (epochs - finished[-1]["epoch"])
    if not all(math.isfinite(value) for value in (best, left) if value is not None):
        raise ValueError("metrics.jsonl has values that are not finite numbers")
    return RunSummary(
        run.path.name,
        "training" if minutes_ago < SILENT_MINUTES else "stopped",
        f"{finished[-1]['epoch'] if finished else 0}/{epochs}",
        "-" if best is None else f"{100 * best:.1f} % val",
        left,
    )
