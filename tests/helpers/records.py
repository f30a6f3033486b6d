"""Records as runs leave them, with metrics made up."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bcn.paper.records import result_path
from bcn.paper.tables import find_recipe
from bcn.training.recipe import Recipe, Scale


def make_metric(correct: int, total: int = 100) -> dict[str, Any]:
    """Metrics of one kind of question."""
    return {"correct": correct, "total": total, "accuracy": correct / total, "interval": [0.0, 1.0]}


def write_record(
    results: Path,
    name: str,
    seed: int,
    metrics: dict[str, Any],
    *,
    scale: Scale = "cpu",
    change: Callable[[Recipe], Recipe] | None = None,
    tests: dict[str, Any] | None = None,
    ranks: int = 1,
) -> Path:
    """Write the record of a run of the recipe `name`.

    Args:
        metrics: those on the recipe's own test set.
        change: makes the recipe that the record says was run, where that is not the one of today.
        tests: metrics on further test sets, by name.
    """
    recipe = find_recipe(name, scale)
    curve = {"loss": 1.0, "accuracy": 0.5, "relational": 0.4, "non_relational": 0.6}
    record = {
        "recipe": asdict(change(recipe) if change else recipe),
        "seed": seed,
        "metrics": {"test": metrics, **(tests or {})},
        "ranks": ranks,
        "cpu_seconds": 600.0 * (seed + 1),
        "curve": [{**curve, "epoch": epoch, "step": epoch, "loss": 1 / epoch} for epoch in (1, 2, 3)],
    }
    path = result_path(results, recipe, seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record))
    return path


def questions(relational: int, non_relational: int) -> dict[str, Any]:
    """Metrics of a model that answers questions, correct of 10,000."""
    return {"relational": make_metric(relational, 10_000), "non_relational": make_metric(non_relational, 10_000)}


def cells(text: str, row: str) -> list[str]:
    """The cells of the row of that name of a markdown table."""
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {row} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]
