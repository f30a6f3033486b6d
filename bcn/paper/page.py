"""docs/results/tables.md: every table of the paper side by side with ours, with curves and figures."""

from collections.abc import Sequence
from pathlib import Path

from bcn.errors import BcnError
from bcn.io import atomic_write
from bcn.paper.figures import FIGURES, curves
from bcn.paper.figures.style import write
from bcn.paper.rows import Line, grid, kinds_markdown, lines_of, markdown
from bcn.paper.tables import TABLES, Table, published_rows

INTRODUCTION = """# Results

Made by `bcn report` from the records under `results/`, one for each finished run;
[how to make them again](../guides/reproduce.md), [where we differ and why](where-we-differ.md). A dash stands where we
have not run anything. Parameters are counted as the
paper counts them: with BatchNorm's statistics for the classifiers, trainable ones alone for Sort-of-CLEVR, where the
paper, but not we, leaves out the last layer (2,570) in `mlp`, `cce-mlp`, `multirn-no-bcn` and all sizes of the BCN but
128-128-256; for CLEVR with 90 words, about as many as its questions have (`clevr-like-v1` has 75, so 750 parameters
fewer).
MACs are multiply-accumulates for one question about one image (one image where nothing is asked) in the literal form
of the equations. CPU time is the mean over the runs, in brackets what a run would take by a few measured steps; runs
were made on two kinds of processor and at different commits, as their records say, so it does not compare rows.
Runtimes that do, of tables 1 and 3 and beside the paper's, stand in [measurements.md](measurements.md).
"""
SECTIONS = ("convolution", "bcn", "g", "f", "total")


def write_page(page: Path, results: Path) -> list[Path]:
    """Write the page, and its curves into figures/ beside it."""
    if not any(results.glob("*/*/*-seed*.json")):
        raise BcnError(f"{results} has no records of finished runs: name a directory that has with --results")
    written, parts = [page], [INTRODUCTION]
    for table in TABLES.values():
        parts.append(f"## {table.title}\n")
        scales = [scale for scale in ("paper", "cpu") if any(line.results for line in lines_of(table, scale, results))]
        for scale in scales or ["cpu"]:
            lines = lines_of(table, scale, results)
            parts.append(markdown(table, scale, lines))
            if "relational" in table.metrics and (kinds := kinds_markdown(lines)):
                parts.append(f"By kind of question, ours:\n\n{kinds}")
            name = f"curves-{table.name}-{scale}"
            if drawn := _curves(lines):
                figure = curves.draw(drawn)
                written.append(write(figure, page.parent / "figures" / f"{name}.png"))
                parts.append(f"![{table.title}: the runs over their epochs](figures/{name}.png)\n")
    parts += [_sections(), _figures(page.parent)]
    with atomic_write(page) as temporary:
        temporary.write_text("\n".join(part for part in parts if part))
    return written


def _curves(lines: Sequence[Line]) -> dict[str, curves.Curve]:
    found = {f"{line.name}, seed {result.seed}": result.curve for line in lines for result in line.results}
    return {name: curve for name, curve in found.items() if curve}


def _sections() -> str:
    """Appendix table 2, which needs no training: the paper's millions of MACs and those of our models."""
    from bcn.models.cost import on_meta, reference_macs
    from bcn.models.registry import image_shape

    rows = []
    for name, printed in published_rows("sections").items():
        ours = reference_macs(on_meta(f"sort-of-clevr/{name}"), image_shape(f"sort-of-clevr/{name}"))
        cells = [(printed.get(section), getattr(ours, section) / 1e6) for section in SECTIONS]
        rows.append(
            [name, *(f"{'-' if paper is None else format(paper, 'g')} / {count:.4g}" for paper, count in cells)]
        )
    table = grid(["row", *(f"{section}, paper / ours" for section in SECTIONS)], rows)
    return f"## Appendix table 2: cost by section, millions of MACs\n\n{table}\n"


def _figures(docs: Path) -> str:
    """Those figures that `bcn figure` has written beside the page."""
    shown = [
        f"**{name}**: {about}\n\n![{about}](figures/{name}.png)\n"
        for name, (about, _) in FIGURES.items()
        if (docs / "figures" / f"{name}.png").exists()
    ]
    return "\n".join(["## Figures\n", *shown]) if shown else ""


def write_table(table: Table, scale: str, results: Path) -> tuple[str, list[Path]]:
    """Write a table beside the records it is made from, as markdown and CSV; its markdown is also given back."""
    from bcn.paper.rows import as_csv

    lines = lines_of(table, scale, results)
    text = markdown(table, scale, lines)
    if "relational" in table.metrics and (kinds := kinds_markdown(lines)):
        text += f"\n{kinds}"
    paths = [results / table.name / f"{scale}.md", results / table.name / f"{scale}.csv"]
    for path, content in zip(paths, (f"# {table.title}\n\n{text}", as_csv(table, scale, lines)), strict=True):
        with atomic_write(path) as temporary:
            temporary.write_text(content)
    return text, paths
