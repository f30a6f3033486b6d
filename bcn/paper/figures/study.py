"""What a BCN is worth, and when: relational validation error over the steps of every run of the study."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bcn.paper.figures.style import COLOURS, canvas, plain_logarithmic
from bcn.paper.recipes.broadcast_study import REGIMES, VARIANTS
from bcn.paper.rows import lines_that_ran

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOUR = dict(zip(VARIANTS, COLOURS, strict=False))


def draw(results: Path) -> "Figure":
    """A panel for each regime that ran, a line for each run; dashed without a BCN."""
    lines = {line.name: line for line in lines_that_ran("broadcast", "cpu", results) if line.results}
    ran = [regime for regime in REGIMES if any(name.endswith(f"-{regime}") for name in lines)]
    figure, axes = canvas(1, len(ran), size=(1.0 + 3.4 * len(ran), 3.6))
    for regime, axis in zip(ran, axes[0], strict=True):
        for variant, about in VARIANTS.items():
            line = lines.get(f"{variant}-{regime}")
            for result in line.results if line else ():
                points = [(entry["step"], 100 - 100 * entry["relational"]) for entry in result.curve]
                style = "-" if about.broadcast else "--"
                axis.plot(*zip(*points, strict=True), style, color=COLOUR[variant], lw=1.3, label=variant)
        axis.set_title(REGIMES[regime].about, loc="left", wrap=True)
        axis.set_xlabel("step")
        axis.grid(alpha=0.3)
        plain_logarithmic(axis)
    axes[0, 0].set_ylabel("relational validation error, %")
    labels: dict[str, Any] = {}
    for axis in axes[0]:
        handles, names = axis.get_legend_handles_labels()
        labels |= dict(zip(names, handles, strict=True))
    figure.legend(list(labels.values()), list(labels), loc="outside lower center", ncols=len(labels), frameon=False)
    return figure
