"""What each choice of the `cpu` scale is worth: relational accuracy of multirn-h with one of them changed."""

from pathlib import Path
from typing import TYPE_CHECKING

from bcn.paper.figures.style import COLOURS, canvas
from bcn.paper.rows import lines_that_ran

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(results: Path, *, scale: str = "cpu") -> "Figure":
    """A dot for each run with its interval, a line for the paper."""
    lines = [line for line in lines_that_ran("ablation", scale, results) if line.results]
    figure, axes = canvas(size=(7, 0.9 + 0.4 * len(lines)))
    axis = axes[0, 0]
    axis.axvline(lines[0].cells[0].paper, color="#999999", lw=1, ls="--", label="the paper")
    for place, line in enumerate(lines):
        for result in line.results:
            measured = result.metric("relational")
            assert measured is not None
            assert measured.low is not None
            assert measured.high is not None
            sides = [[measured.value - measured.low], [measured.high - measured.value]]
            colour = COLOURS[0] if line.name == "base" else COLOURS[1]
            axis.errorbar(measured.value, place, xerr=sides, fmt="o", ms=4, lw=1, capsize=2, color=colour)
    axis.set_yticks(range(len(lines)), [line.name for line in lines])
    axis.invert_yaxis()
    axis.set_xlabel("relational accuracy, %; a dot for each seed, with its 95 % interval")
    axis.grid(alpha=0.3, axis="x")
    axis.legend(loc="best", frameon=False)
    return figure
