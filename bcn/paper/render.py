"""The rows of a table as markdown and CSV; `-` where nothing was run."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from bcn.data.sort_of_clevr.questions import KINDS
from bcn.io import atomic_write
from bcn.models.cost import paper_cost
from bcn.paper.rows import Cell, Line, cell, lines_of
from bcn.paper.tables import OBJECTS, Table
from bcn.training.progress import duration

HEADINGS = {
    "accuracy": "accuracy, %",
    "localisation": "localisation error",
    "mean_iou": "mean IoU, %",
    "average_precision": "AP at half overlap, %",
    "relational": "relational, %",
    "non_relational": "non-relational, %",
    **{arity: f"{arity}, %" for arity in ("unary", "binary", "ternary")},
    "scaled": "Scaled-MNIST, %",
    "more_scaled": "MoreScaled, %",
    "rotated_10": "rotated 10°, %",
    "rotated_45": "rotated 45°, %",
    "affnist": "affNIST, %",
    "overall": "overall, %",
    "count": "count, %",
    "exist": "exist, %",
    "compare_numbers": "compare numbers, %",
    "query_attribute": "query attribute, %",
    "compare_attribute": "compare attribute, %",
    "attributes": "attributes and counts, %",
    "relations": "relations, %",
    **{metric: f"relational, {objects} objects, %" for metric, objects in OBJECTS.items()},
}
OURS = HEADINGS | {"affnist": "affine-mnist-v1, %"}
"""affNIST could not be had"""
COSTS = {"params": "parameters", "macs": "MACs"}


def write_table(table: Table, scale: str, results: Path) -> tuple[str, list[Path]]:
    """Write a table next to its records, as markdown and CSV; returns its markdown and the files."""
    lines = lines_of(table, scale, results)
    text = markdown(table, scale, lines)
    if "relational" in table.metrics and (kinds := kinds_markdown(lines)):
        text += f"\n{kinds}"
    paths = [results / table.name / f"{scale}.md", results / table.name / f"{scale}.csv"]
    for path, content in zip(paths, (f"# {table.title}\n\n{text}", as_csv(table, scale, lines)), strict=True):
        with atomic_write(path) as temporary:
            temporary.write_text(content, encoding="utf-8")
    return text, paths


def markdown(table: Table, scale: str, lines: Sequence[Line]) -> str:
    """The table for people, with every departure from the paper under it."""
    printed = [any(line.cells[index].paper is not None for line in lines) for index in range(len(table.metrics))]
    sides = [("paper", "ours") if both else ("ours",) for both in printed]
    columns = zip(table.metrics, sides, strict=True)
    names = {"paper": HEADINGS, "ours": OURS}
    headings = ["row", *(f"{names[side][metric]} {side}" for metric, of in columns for side in of)]
    costs = [key for key in ("params", "macs") if any(key in line.printed for line in lines)]
    headings += ["n", *(f"{COSTS[key]} paper" for key in costs), "parameters ours", "MACs ours", "CPU time"]
    rows = []
    for line in lines:
        metrics = [
            _ours(metric, each) if side == "ours" else "-" if each.paper is None else f"{each.paper:g}"
            for metric, each, of in zip(table.metrics, line.cells, sides, strict=True)
            for side in of
        ]
        counted = paper_cost(line.recipe.model, line.recipe.arguments) if line.recipe else None
        parameters, macs = (f"{counted.parameters:,}", short_macs(counted.macs)) if counted else ("-", "-")
        cost_cells = [*(str(line.printed.get(key, "-")) for key in costs), parameters, macs]
        rows.append([line.name, *metrics, str(len(line.results)), *cost_cells, _time(line)])
    return f"{grid(headings, rows)}\n\n{_notes(table, scale, lines)}\n"


def compact(table: Table, scale: str, results: Path) -> tuple[list[str], list[list[str]]]:
    """Headings and rows for a terminal: of each metric what the paper prints and our mean."""
    headings = ["row", *(f"{HEADINGS[metric]}\npaper / ours" for metric in table.metrics), "n", "CPU time"]
    rows = []
    for line in lines_of(table, scale, results):
        cells = [
            f"{'-' if each.paper is None else f'{each.paper:g}'} / {_ours(metric, Cell(None, each.mean))}"
            for metric, each in zip(table.metrics, line.cells, strict=True)
        ]
        rows.append([line.name, *cells, str(len(line.results)), _time(line)])
    return headings, rows


def kinds_markdown(lines: Sequence[Line]) -> str:
    """Accuracy for each of the six kinds of question of Sort-of-CLEVR, of the rows that were run; empty without any."""
    rows = []
    for line in lines:
        cells = [cell(None, [result.metric(kind) for result in line.results]) for kind in KINDS]
        if any(each.mean is not None for each in cells):
            rows.append([line.name, *(_ours(kind, each) for kind, each in zip(KINDS, cells, strict=True))])
    return f"{grid(['row', *(f'{kind}, %' for kind in KINDS)], rows)}\n" if rows else ""


def broadcast_markdown(lines: Sequence[Line]) -> str:
    """What the BCN of each run carries: active channels, and accuracy with the vectors of no image or of another."""
    rows = []
    for line in lines:
        for result in line.results:
            probe = (result.record.get("broadcast") or {}).get("test")
            if probe is None:
                continue
            metric = "relational" if "relational" in probe["as_trained"] else "accuracy"
            shown = [
                f"{100 * probe[vector][metric]:.2f}" for vector in ("as_trained", "mean_vector", "shuffled_vector")
            ]
            share = f"{probe['vector_share']:.3f}" if "vector_share" in probe else "-"
            active = f"{probe['active_channels']} of {probe['channels']}"
            rows.append([f"{line.name}, seed {result.seed}", active, share, f"{shown[0]} ({metric})", *shown[1:]])
    headings = ["run", "active channels", "share of the variance", "test, %", "with the mean vector, %", "shuffled, %"]
    return f"{grid(headings, rows)}\n" if rows else ""


def as_csv(table: Table, scale: str, lines: Sequence[Line]) -> str:
    """The table for programs: one line per row, empty where nothing was run."""
    parts = ("paper", "mean", "spread", "low", "high")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    headings = [f"{metric}_{part}" for metric in table.metrics for part in parts]
    writer.writerow(["row", "scale", *headings, "seeds", "parameters", "macs", "cpu_minutes"])
    for line in lines:
        values = [getattr(each, part) for each in line.cells for part in parts]
        metrics = [None if value is None else round(value, 6) for value in values]
        seeds = " ".join(str(result.seed) for result in line.results)
        counted = paper_cost(line.recipe.model, line.recipe.arguments) if line.recipe else (None, None)
        minutes = round(mean(result.cpu_minutes for result in line.results), 2) if line.results else None
        writer.writerow([line.name, scale, *metrics, seeds, *counted, minutes])
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


def short_macs(macs: int) -> str:
    """
    >>> short_macs(23_591_250), short_macs(2_149_402_450)
    ('23.59M', '2.15G')
    """
    return f"{macs / 1e9:.2f}G" if macs >= 1e9 else f"{macs / 1e6:.2f}M"


def show(cell: Cell, digits: int = 2) -> str:
    """
    >>> show(Cell(None, 96.912, 0.1249, 96.7, 97.12)), show(Cell(None))
    ('96.91 ± 0.12', '-')
    """
    if cell.mean is None:
        return "-"
    return f"{cell.mean:.{digits}f}" + (f" ± {cell.spread:.{digits}f}" if cell.spread is not None else "")


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
    text = show(cell, digits)
    if cell.low is not None and cell.high is not None:
        text += f" [{cell.low:.{digits}f}, {cell.high:.{digits}f}]"
    return text


def _notes(table: Table, scale: str, lines: Sequence[Line]) -> str:
    """What the numbers are, every departure (those of all rows first), and the records that were left out."""
    departures = {line.name: list(line.departures.values()) for line in lines if line.recipe}
    shared = [text for text in next(iter(departures.values())) if all(text in own for own in departures.values())]
    notes = [f"scale `{scale}`; ours is mean ± standard deviation over n seeds [95 % Wilson interval on one test set]"]
    notes += [table.note] if table.note else []
    notes += shared
    for text in dict.fromkeys(text for own in departures.values() for text in own if text not in shared):
        notes.append(f"{', '.join(f'`{name}`' for name, own in departures.items() if text in own)}: {text}")
    left_out = [f"`{path.name}` of `{line.name}`" for line in lines for path in line.left_out]
    if left_out:
        notes.append(f"left out, of a recipe changed by `--set` or since: {', '.join(left_out)}")
    return "\n".join(f"- {note[0].upper()}{note[1:]}." for note in notes)
