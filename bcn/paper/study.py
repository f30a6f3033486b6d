"""docs/results/broadcast.md: what a BCN is worth, and when; a table for each regime and a picture, from records.

Everything is measured in validation: the study chooses a recipe, so it does not look at the test split.
"""

from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev

from bcn.io import atomic_write
from bcn.paper.figures import study as picture
from bcn.paper.figures.style import write
from bcn.paper.recipes.broadcast_study import REGIMES, VARIANTS
from bcn.paper.records import Result
from bcn.paper.render import grid
from bcn.paper.rows import Line, lines_of
from bcn.paper.tables import find_table

LEARNED = 0.95
"""non-relational accuracy at which the initial plateau is over"""
INTRODUCTION = """# What a BCN is worth, and when

Made by `bcn report` from the records under `results/broadcast/`, one for each run of `bcn train broadcast/ROW --scale
cpu`; a dash means that we have not run it. All numbers are of `sort-of-clevr-v1`'s 1,000 validation images, which also
selected the epoch, so they are for comparing rows with each other and not with the test results of
[the tables](tables.md). Rows differ in what follows the BCN's last convolution and in the initial weights; none has a
parameter more than another, but for those without a BCN.

- *Steps to 95 %*: until non-relational accuracy first passes 95 %, counted in whole epochs: the end of the plateau.
- *Active channels* vary over the validation images; *share* is what the vector carries of the variance of g's input.
- *Mean vector*: relational accuracy when every image is given the mean of the vectors. It says what a trained network
  depends on. What the BCN is *worth* is the difference to the rows without one.
"""
HEADINGS = (
    "the BCN",
    "n",
    "steps to 95 % non-relational",
    "relational, %",
    "non-relational, %",
    "active channels",
    "share",
    "relational with the mean vector, %",
)


def write_study(page: Path, results: Path) -> list[Path]:
    """Write the page, and its picture into figures/ next to it; nothing while there is no record."""
    lines = lines_of(find_table("broadcast"), "cpu", results)
    if not any(line.results for line in lines):
        return []
    figure = write(picture.draw(results), page.parent / "figures" / "broadcast-study.png")
    parts = [INTRODUCTION, f"![validation error over the steps of each run](figures/{figure.name})\n"]
    for regime, about in REGIMES.items():
        of_regime = [line for line in lines if line.name in {f"{variant}-{regime}" for variant in about.variants}]
        rows = [_row(line, regime) for line in of_regime]
        parts.append(f"## {about.about}\n\n{grid(HEADINGS, rows)}\n")
    with atomic_write(page) as temporary:
        temporary.write_text("\n".join(parts), encoding="utf-8")
    return [page, figure]


def _row(line: Line, regime: str) -> list[str]:
    variant = line.name.removesuffix(f"-{regime}")
    about = f"`{line.name}`: {VARIANTS[variant].about}"
    if not line.results:
        return [about, "0", *["-"] * (len(HEADINGS) - 2)]
    best = [_best(result) for result in line.results]
    probes = [result.record["broadcast"]["val"] for result in line.results if result.record.get("broadcast")]
    return [
        about,
        str(len(line.results)),
        ", ".join(_steps(result) for result in line.results),
        _mean([100 * entry["relational"] for entry in best]),
        _mean([100 * entry["non_relational"] for entry in best]),
        ", ".join(str(probe["active_channels"]) for probe in probes) or "-",
        _mean([probe["vector_share"] for probe in probes]) if probes else "-",
        _mean([100 * probe["mean_vector"]["relational"] for probe in probes]) if probes else "-",
    ]


def _best(result: Result) -> dict[str, float]:
    """The validation metrics of the epoch that was kept."""
    return next(entry for entry in result.curve if entry["epoch"] == result.record["best_epoch"])


def _steps(result: Result) -> str:
    return next((f"{entry['step']:,}" for entry in result.curve if entry.get("non_relational", 0) > LEARNED), "never")


def _mean(values: Sequence[float]) -> str:
    """
    >>> _mean([91.25]), _mean([90.0, 92.0])
    ('91.25', '91.00 ± 1.41')
    """
    return f"{mean(values):.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")
