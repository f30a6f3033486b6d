"""What is kept of a finished run: a few kilobytes of JSON from which every table is made."""

from dataclasses import asdict
from typing import Any

from bcn.data.dataset import Dataset
from bcn.models.cost import count_parameters, reference_macs
from bcn.training.environment import commit, machine, versions
from bcn.training.recipe import Recipe
from bcn.training.run import Run
from bcn.training.state import State


def make_record(run: Run, recipe: Recipe, state: State, dataset: Dataset, measured: dict[str, Any]) -> dict[str, Any]:
    """The record of a run.

    MACs are counted as in the tables: one question about one image, in the reference implementation of the equations.
    Seconds are those of the work that led to the result, without what a crash threw away. CPU seconds are the main
    rank's; those of training are of the steps alone, without validation and tests.

    Args:
        dataset: the training split.
        measured: metrics (by test set, of the kept weights), last (of the last weights), threads, ranks.
    """
    state.update_clock()
    at = state.position
    channels, height, width = dataset[[0]].image.shape[1:]
    return {
        "run": run.path.name,
        "recipe": asdict(recipe),
        "seed": run.manifest["seed"],
        "overridden": run.manifest["overridden"],
        "overrides": run.manifest["overrides"],
        "data": run.manifest["data"],
        **measured,
        "best_epoch": at.best_epoch,
        **({"stopped_after": at.epoch} if at.epoch < recipe.epochs else {}),
        "parameters": count_parameters(state.model),
        "with_statistics": count_parameters(state.model, statistics=True),
        "macs": round(reference_macs(state.model, (channels, height, width)).total),
        "steps": at.step,
        "questions": at.questions,
        "questions_per_second": round(at.questions / at.train_seconds, 1),
        "seconds": round(at.seconds, 1),
        "cpu_seconds": round(at.cpu_seconds, 1),
        "train_seconds": round(at.train_seconds, 1),
        "train_cpu_seconds": round(at.train_cpu_seconds, 1),
        "sessions": at.sessions,
        "versions": versions(),
        "commit": commit(),
        "machine": machine(),
        "curve": run.curve(),
    }


def cpu_minutes(record: dict[str, Any]) -> float:
    """CPU time of all ranks, which share the work evenly; pauses and other programs do not count."""
    return int(record["ranks"]) * float(record["cpu_seconds"]) / 60
