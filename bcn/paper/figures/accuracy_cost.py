"""Relational accuracy against the cost of one answer, for all models of table 3."""

from pathlib import Path
from typing import TYPE_CHECKING

from bcn.models.cost import paper_cost
from bcn.paper.figures.style import COLOURS, canvas
from bcn.paper.rows import lines_that_ran

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(results: Path, *, table: str = "table3", scale: str = "cpu") -> "Figure":
    lines = [line for line in lines_that_ran(table, scale, results) if line.recipe]
    figure, axes = canvas(size=(7, 4.2))
    axis = axes[0, 0]
    for line, colour, marker in zip(lines, COLOURS, "osD^v<>P", strict=True):
        assert line.recipe is not None
        macs = paper_cost(line.recipe.model, line.recipe.arguments).macs
        cell = line.cells[0]
        label = line.name if cell.mean is not None else f"{line.name} (not run)"
        axis.plot(
            macs, cell.paper, marker, mfc="none", mec=colour, ms=8, label=None if cell.mean is not None else label
        )
        if cell.mean is not None:
            axis.plot([macs, macs], [cell.paper, cell.mean], "-", color=colour, lw=0.8, alpha=0.6)
            axis.errorbar(macs, cell.mean, cell.spread, fmt=marker, color=colour, ms=6, capsize=3, label=label)
    axis.set_xscale("log")
    axis.set_xlabel("multiply-accumulates for one question about one image")
    axis.set_ylabel("relational accuracy, %")
    axis.set_title("open: the paper, at our MACs; filled: ours, with the standard deviation over seeds", loc="left")
    axis.grid(alpha=0.3)
    axis.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return figure
