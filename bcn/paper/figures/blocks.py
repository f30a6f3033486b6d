"""Other blocks in the place of the BCN: a panel for each thing that is measured, a line for each block."""

from pathlib import Path
from typing import TYPE_CHECKING

from bcn.paper.figures.style import COLOURS, canvas
from bcn.paper.recipes.blocks import ABOUT
from bcn.paper.render import HEADINGS
from bcn.paper.rows import lines_that_ran
from bcn.paper.tables import find_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(results: Path, *, scale: str = "cpu") -> "Figure":
    """Means over seeds with their standard deviations; a block that has not been trained has no point."""
    metrics = find_table("blocks").metrics
    lines = {line.name: line for line in lines_that_ran("blocks", scale, results)}
    panels = [("", metric) for metric in metrics] + [("stl10-", "accuracy")]
    figure, axes = canvas(1, len(panels), size=(2.0 + 2.0 * len(panels), 3.2))
    for (prefix, metric), axis in zip(panels, axes[0], strict=True):
        for place, name in enumerate(ABOUT):
            measured = lines[prefix + name].cells[metrics.index(metric)]
            if measured.mean is not None:
                colour = COLOURS[0] if name == "bcn" else "0.35"
                axis.errorbar([measured.mean], [place], xerr=[measured.spread or 0], fmt="o", ms=5, color=colour)
        axis.set_yticks(range(len(ABOUT)), list(ABOUT) if axis is axes[0, 0] else [])
        axis.set_ylim(len(ABOUT) - 0.5, -0.5)
        title = "STL-10, accuracy, %" if prefix else HEADINGS[metric]
        axis.set_title(title, loc="left")
        axis.grid(alpha=0.3)
    return figure
