"""Accuracy on digits deformed as none in training were, for all models of appendix table 1."""

from pathlib import Path
from typing import TYPE_CHECKING

from bcn.paper.figures.style import COLOURS, canvas
from bcn.paper.render import HEADINGS, OURS
from bcn.paper.rows import lines_that_ran
from bcn.paper.tables import find_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(results: Path, *, scale: str = "cpu") -> "Figure":
    """The paper and ours, one panel each; a bar is the standard deviation over seeds."""
    table = find_table("deformation")
    lines = lines_that_ran(table.name, scale, results)
    figure, axes = canvas(1, 2, size=(9.5, 4))
    places = range(len(table.metrics))
    for line, colour, marker in zip(lines, COLOURS, "osD^v<>P", strict=False):
        style = {"color": colour, "marker": marker, "ms": 5, "lw": 1.2}
        axes[0, 0].plot(places, [cell.paper for cell in line.cells], label=line.name, **style)
        if line.results:
            means, spreads = zip(*((cell.mean, cell.spread or 0) for cell in line.cells), strict=True)
            axes[0, 1].errorbar(places, means, spreads, capsize=3, **style)
    for axis, title, headings in zip(axes[0], ("paper", "ours"), (HEADINGS, OURS), strict=True):
        axis.set_title(title, loc="left")
        axis.set_xticks(places, [headings[metric].removesuffix(", %") for metric in table.metrics])
        axis.tick_params("x", rotation=25)
        axis.set_ylim(0, 100)
        axis.grid(alpha=0.3)
    axes[0, 0].set_ylabel("accuracy, %")
    figure.legend(loc="outside lower center", ncols=4, frameon=False)
    return figure
