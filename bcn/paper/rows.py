"""Records to tables: what the paper prints and what our runs gave, side by side; `-` where nothing was run."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from bcn.data.sort_of_clevr.questions import KINDS
from bcn.errors import BcnError
from bcn.models.cost import paper_cost
from bcn.paper.recipes import find_recipe, list_recipes
from bcn.paper.records import Estimate, Measured, Result, estimate_of, results_of
from bcn.paper.tables import OBJECTS, Table, find_table, published_rows
from bcn.training.metrics import wilson
from bcn.training.progress import duration
from bcn.training.recipe import Recipe

HEADINGS = {
    "accuracy": "accuracy, %",
    "localisation": "localisation error",
    "relational": "relational, %",
    "non_relational": "non-relational, %",
    "scaled": "Scaled-MNIST, %",
    "more_scaled": "MoreScaled, %",
    "rotated_10": "turned 10°, %",
    "rotated_45": "turned 45°, %",
    "affnist": "affNIST, %",
    "overall": "overall, %",
    "count": "count, %",
    "exist": "exist, %",
    "compare_numbers": "compare numbers, %",
    "query_attribute": "query attribute, %",
    "compare_attribute": "compare attribute, %",
    **{metric: f"relational, {objects} objects, %" for metric, objects in OBJECTS.items()},
}
OURS = HEADINGS | {"affnist": "affine-mnist-v1, %"}
"""affNIST could not be had"""
COSTS = {"params": "parameters", "macs": "MACs"}


@dataclass(frozen=True)
class Cell:
    """One figure over the seeds of a row."""

    paper: float | None
    mean: float | None = None
    spread: float | None = None
    """standard deviation over seeds, where there are two or more"""
    low: float | None = None
    high: float | None = None
    """95 % Wilson interval of the mean on one test set, which is the same for every seed"""


@dataclass(frozen=True)
class Line:
    """One row of a table."""

    name: str
    cells: tuple[Cell, ...]
    printed: dict[str, Any]
    """what the paper prints besides: parameters, MACs"""
    recipe: Recipe | None = None
    """None where the paper cites the figures of others"""
    results: tuple[Result, ...] = ()
    left_out: tuple[Path, ...] = ()
    estimate: Estimate | None = None


def lines_of(table: Table, scale: str, results: Path) -> list[Line]:
    """The rows of a table, in the paper's order; of a table of our own, its recipes."""
    recipes = {name.split("/")[1]: find_recipe(name, scale) for name in list_recipes(table.name)}
    figures = published_rows(table.published) if table.published else {}
    lines = []
    for name in figures or recipes:
        printed = figures.get(name, {})
        if name not in recipes:
            lines.append(Line(name, tuple(Cell(printed[metric]) for metric in table.metrics), printed))
            continue
        counted, left_out = results_of(results, recipes[name])
        paper = dict(recipes[name].paper)
        cells = tuple(
            _cell(paper.get(metric), [result.measured(metric) for result in counted]) for metric in table.metrics
        )
        estimate = estimate_of(results, recipes[name])
        lines.append(Line(name, cells, printed, recipes[name], tuple(counted), tuple(left_out), estimate))
    return lines


def lines_that_ran(name: str, scale: str, results: Path) -> list[Line]:
    """The rows of a table for a figure, which needs the record of one of them at least."""
    lines = lines_of(find_table(name), scale, results)
    if not any(line.results for line in lines):
        raise BcnError(f"no records of {name} at scale {scale} under {results}: run `bcn table {name}` first")
    return lines


def _cell(paper: float | None, measured: Sequence[Measured | None]) -> Cell:
    found = [one for one in measured if one is not None]
    if not found:
        return Cell(paper)
    values = [one.value for one in found]
    average, spread = mean(values), stdev(values) if len(values) > 1 else None
    if found[0].total is None:
        return Cell(paper, average, spread)
    low, high = wilson(average / 100 * found[0].total, found[0].total)
    return Cell(paper, average, spread, 100 * low, 100 * high)


def markdown(table: Table, scale: str, lines: Sequence[Line]) -> str:
    """The table for people, with every deviation under it."""
    compared = [any(line.cells[place].paper is not None for line in lines) for place in range(len(table.metrics))]
    sides = [("paper", "ours") if both else ("ours",) for both in compared]
    columns = zip(table.metrics, sides, strict=True)
    named = {"paper": HEADINGS, "ours": OURS}
    headings = ["row", *(f"{named[side][metric]} {side}" for metric, of in columns for side in of)]
    printed = [key for key in ("params", "macs") if any(key in line.printed for line in lines)]
    headings += ["n", *(f"{COSTS[key]} paper" for key in printed), "parameters ours", "MACs ours", "CPU time"]
    rows = []
    for line in lines:
        figures = [
            _ours(metric, cell) if side == "ours" else "-" if cell.paper is None else f"{cell.paper:g}"
            for metric, cell, of in zip(table.metrics, line.cells, sides, strict=True)
            for side in of
        ]
        counted = paper_cost(line.recipe.model, line.recipe.arguments) if line.recipe else None
        parameters, macs = (f"{counted.parameters:,}", _short(counted.macs)) if counted else ("-", "-")
        costs = [*(str(line.printed.get(key, "-")) for key in printed), parameters, macs]
        rows.append([line.name, *figures, str(len(line.results)), *costs, _time(line)])
    return f"{grid(headings, rows)}\n\n{_notes(scale, lines)}\n"


def kinds_markdown(lines: Sequence[Line]) -> str:
    """Accuracy for each of the six kinds of question of Sort-of-CLEVR, of the rows that were run; empty without any."""
    rows = []
    for line in lines:
        cells = [_cell(None, [result.measured(kind) for result in line.results]) for kind in KINDS]
        if any(cell.mean is not None for cell in cells):
            rows.append([line.name, *(_ours(kind, cell) for kind, cell in zip(KINDS, cells, strict=True))])
    return f"{grid(['row', *(f'{kind}, %' for kind in KINDS)], rows)}\n" if rows else ""


def as_csv(table: Table, scale: str, lines: Sequence[Line]) -> str:
    """The table for programs: one line per row, empty where nothing was run."""
    parts = ("paper", "mean", "spread", "low", "high")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    headings = [f"{metric}_{part}" for metric in table.metrics for part in parts]
    writer.writerow(["row", "scale", *headings, "seeds", "parameters", "macs", "cpu_minutes"])
    for line in lines:
        values = [getattr(cell, part) for cell in line.cells for part in parts]
        figures = [None if value is None else round(value, 6) for value in values]
        seeds = " ".join(str(result.seed) for result in line.results)
        counted = paper_cost(line.recipe.model, line.recipe.arguments) if line.recipe else (None, None)
        minutes = round(mean(result.cpu_minutes for result in line.results), 2) if line.results else None
        writer.writerow([line.name, scale, *figures, seeds, *counted, minutes])
    return text.getvalue()


def grid(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in markdown."""
    lines = [headings, ["---", *["--:"] * (len(headings) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _time(line: Line) -> str:
    """The mean CPU time of a run; of one that was never finished, what measured steps say it would take."""
    if line.results:
        return duration(60 * mean(result.cpu_minutes for result in line.results))
    return f"(about {duration(line.estimate.seconds)})" if line.estimate else "-"


def _short(macs: int) -> str:
    """
    >>> _short(23_591_250), _short(2_149_402_450)
    ('23.59M', '2.15G')
    """
    return f"{macs / 1e9:.2f}G" if macs >= 1e9 else f"{macs / 1e6:.2f}M"


def _ours(metric: str, cell: Cell) -> str:
    """
    >>> _ours("relational", Cell(96.7, 96.912, 0.1249, 96.7, 97.12))
    '96.91 ± 0.12 [96.70, 97.12]'
    >>> _ours("localisation", Cell(0.023))
    '-'
    """
    digits = 4 if metric == "localisation" else 2
    if cell.mean is None:
        return "-"
    text = f"{cell.mean:.{digits}f}"
    if cell.spread is not None:
        text += f" ± {cell.spread:.{digits}f}"
    if cell.low is not None and cell.high is not None:
        text += f" [{cell.low:.{digits}f}, {cell.high:.{digits}f}]"
    return text


def _notes(scale: str, lines: Sequence[Line]) -> str:
    """What the figures are, every deviation (those of all rows first), and the records that were left out."""
    deviations = {line.name: line.recipe.departures for line in lines if line.recipe}
    shared = [text for text in next(iter(deviations.values())) if all(text in own for own in deviations.values())]
    notes = [f"Scale `{scale}`; ours is mean ± standard deviation over n seeds [95 % Wilson interval on one test set]"]
    notes += shared
    for text in dict.fromkeys(text for own in deviations.values() for text in own if text not in shared):
        notes.append(f"{', '.join(f'`{name}`' for name, own in deviations.items() if text in own)}: {text}")
    left_out = [f"`{path.name}` of `{line.name}`" for line in lines for path in line.left_out]
    if left_out:
        notes.append(f"left out, as overridden or of a recipe that has changed since: {', '.join(left_out)}")
    return "\n".join(f"- {note[0].upper()}{note[1:]}." for note in notes)
