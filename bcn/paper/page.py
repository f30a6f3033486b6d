"""docs/results/tables.md: every table, the paper's numbers next to ours, with curves and figures."""

from collections.abc import Sequence
from pathlib import Path

from bcn.errors import BcnError
from bcn.io import atomic_write
from bcn.models.cost import on_meta, reference_macs
from bcn.models.registry import image_shape
from bcn.paper.figures import FIGURES, curves
from bcn.paper.figures.style import write
from bcn.paper.published import published_rows
from bcn.paper.render import broadcast_markdown, grid, kinds_markdown, markdown
from bcn.paper.retired import retired_markdown
from bcn.paper.rows import Line, lines_of
from bcn.paper.tables import TABLES

INTRODUCTION = """# Results

Made by `bcn report` from the records under `results/`, one for each finished run;
[how to reproduce them](../guides/reproduce.md), [where our results differ and why](where-we-differ.md).
A dash means that we have not run it. Under each table are its departures from the paper: what differs from the
published recipe, and what the paper leaves open.

- Parameters are counted as the paper counts them: with BatchNorm's statistics for the classifiers, trainable ones alone
  for Sort-of-CLEVR. There the paper, but not we, leaves out the last layer (2,570) in `mlp`, `cce-mlp`,
  `multirn-no-bcn` and all sizes of the BCN but 128-128-256. For CLEVR they include 90 words; `clevr-like-v1` has 75, so
  750 parameters fewer.
- MACs are multiply-accumulates of the reference implementation for one question about one image, or for one image where
  there are no questions.
- CPU time is the mean over the runs; in brackets, an estimate from a few measured steps. It does not compare rows: runs
  were made on two kinds of processor and at different commits, as their records say. Runtimes that do compare, next to
  the paper's, are in [measurements.md](measurements.md).
"""
SECTIONS = ("convolution", "bcn", "g", "f", "total")


def write_page(page: Path, results: Path) -> list[Path]:
    """Write the page, and its curves into figures/ next to it."""
    if not any(results.glob("*/*/*-seed*.json")):
        raise BcnError(f"{results} has no records of finished runs: give a directory that has some with --results")
    written, parts = [page], [INTRODUCTION]
    for table in TABLES.values():
        if table.name in ("broadcast", "leaderboard", "wild"):  # on pages of their own
            continue
        parts.append(f"## {table.title}\n")
        scales = [scale for scale in ("paper", "cpu") if any(line.results for line in lines_of(table, scale, results))]
        for scale in scales or ["cpu"]:
            lines = lines_of(table, scale, results)
            parts.append(markdown(table, scale, lines))
            if "relational" in table.metrics and (kinds := kinds_markdown(lines)):
                parts.append(f"By kind of question, ours:\n\n{kinds}")
            if carried := broadcast_markdown(lines):
                parts.append(f"What the BCN carries ([how it is measured](broadcast.md)):\n\n{carried}")
            name = f"curves-{table.name}-{scale}"
            if drawn := _curves(lines):
                figure = curves.draw(drawn)
                written.append(write(figure, page.parent / "figures" / f"{name}.png"))
                parts.append(f"![{table.title}: the runs over their epochs](figures/{name}.png)\n")
    parts += [_sections(), retired_markdown(results), _figures(page.parent)]
    with atomic_write(page) as temporary:
        temporary.write_text("\n".join(part for part in parts if part), encoding="utf-8")
    return written


def _curves(lines: Sequence[Line]) -> dict[str, curves.Curve]:
    found = {f"{line.name}, seed {result.seed}": result.curve for line in lines for result in line.results}
    return {name: curve for name, curve in found.items() if curve}


def _sections() -> str:
    """Appendix table 2, which needs no training: the paper's millions of MACs and those of our models."""
    rows = []
    for name, printed in published_rows("sections").items():
        model = f"sort-of-clevr/{name}"
        ours = reference_macs(on_meta(model), image_shape(model))
        cells = [(printed.get(section), getattr(ours, section) / 1e6) for section in SECTIONS]
        rows.append(
            [name, *(f"{'-' if paper is None else format(paper, 'g')} / {count:.4g}" for paper, count in cells)]
        )
    table = grid(["row", *(f"{section}, paper / ours" for section in SECTIONS)], rows)
    return f"## Appendix table 2: cost by section, millions of MACs\n\n{table}\n"


def _figures(docs: Path) -> str:
    """The figures that `bcn figure` has written next to the page."""
    shown = [
        f"**{name}**: {about}\n\n![{about}](figures/{name}.png)\n"
        for name, (about, _) in FIGURES.items()
        if (docs / "figures" / f"{name}.png").exists()
    ]
    return "\n".join(["## Figures\n", *shown]) if shown else ""
