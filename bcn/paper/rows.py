"""Records to the rows of a table: what the paper prints and what our runs gave, side by side."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, stdev
from typing import Any, cast

from bcn.errors import BcnError
from bcn.paper.departures import departures
from bcn.paper.estimate import Estimate, estimate_of
from bcn.paper.published import published_rows
from bcn.paper.records import Metric, Result, results_of
from bcn.paper.tables import Table, find_recipe, find_table
from bcn.training.metrics import wilson
from bcn.training.recipe import Recipe, Scale


@dataclass(frozen=True)
class Cell:
    """One metric over the seeds of a row."""

    paper: float | None
    mean: float | None = None
    spread: float | None = None
    """standard deviation over seeds, where there are two or more"""
    low: float | None = None
    high: float | None = None
    """95 % Wilson interval of the mean on one test set, which is the same for every seed"""


@dataclass(frozen=True)
class Line:
    """One row of a table, with what was measured."""

    name: str
    cells: tuple[Cell, ...]
    printed: dict[str, Any]
    """everything that the paper prints in this row"""
    recipe: Recipe | None = None
    """None where the paper cites others"""
    results: tuple[Result, ...] = ()
    left_out: tuple[Path, ...] = ()
    """records of another recipe"""
    estimate: Estimate | None = None
    departures: dict[str, str] = field(default_factory=dict)
    """from the paper, a sentence by topic"""


def lines_of(table: Table, scale: str, results: Path) -> list[Line]:
    """The rows of a table, in the paper's order; of a table of ours, in that of its recipes."""
    printed = published_rows(table.published) if table.published else {}
    return [_line(table, name, printed.get(name, {}), scale, results) for name in printed or table.rows]


def _line(table: Table, name: str, printed: dict[str, Any], scale: str, results: Path) -> Line:
    if name not in table.rows:
        return Line(name, tuple(Cell(printed[metric]) for metric in table.metrics), printed)
    recipe = find_recipe(f"{table.name}/{name}", scale)
    counted, left_out = results_of(results, recipe)
    paper = dict(recipe.paper)
    return Line(
        name,
        tuple(cell(paper.get(metric), [result.metric(metric) for result in counted]) for metric in table.metrics),
        printed,
        recipe,
        tuple(counted),
        tuple(left_out),
        estimate_of(results, recipe),
        departures(table.rows[name], cast(Scale, scale)),
    )


def lines_that_ran(name: str, scale: str, results: Path) -> list[Line]:
    """The rows of a table for a figure, which needs the record of one of them at least."""
    lines = lines_of(find_table(name), scale, results)
    if not any(line.results for line in lines):
        raise BcnError(f"no records of {name} at scale {scale} under {results}: run `bcn table {name}` first")
    return lines


def cell(paper: float | None, metrics: Sequence[Metric | None]) -> Cell:
    """Mean, standard deviation and interval of a metric over the seeds that have it."""
    measured = [metric for metric in metrics if metric is not None]
    if not measured:
        return Cell(paper)
    values = [metric.value for metric in measured]
    average, spread = mean(values), stdev(values) if len(values) > 1 else None
    if measured[0].total is None:
        return Cell(paper, average, spread)
    low, high = wilson(average / 100 * measured[0].total, measured[0].total)
    return Cell(paper, average, spread, 100 * low, 100 * high)
