"""Loss and accuracy of several runs over their epochs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bcn.errors import BcnError
from bcn.inference.report.chart import Line, draw_chart, draw_legend
from bcn.inference.report.document import document
from bcn.paper.figures.style import COLOURS, canvas, plain_logarithmic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Curve = Sequence[Mapping[str, Any]]
"""one entry per epoch, as in a record or in the epochs of metrics.jsonl"""
PANELS = {
    "loss": "training loss",
    "relational": "relational validation error, %",
    "non_relational": "non-relational validation error, %",
    "accuracy": "validation error, %",
    "localisation": "localisation error in validation",
    "mean_iou": "100 - mean IoU in validation, %",
    "average_precision": "100 - AP in validation, %",
}


def draw(curves: Mapping[str, Curve]) -> "Figure":
    """A panel for each metric that any run has, a line for each run.

    Runs that share the part of their label before ", seed" share a colour. Errors, not accuracies, are on a logarithmic
    axis: from 99 to 99.9 % is as far as from 90 to 99 %. An error of zero is drawn at the foot of the axis.
    """
    panels, groups = _layout(curves)
    figure, axes = canvas(1, len(panels), size=(1.2 + 3.2 * len(panels), 3.0 + 0.18 * len(groups)))
    for panel, axis in zip(panels, axes[0], strict=True):
        _draw_panel(axis, panel, curves, groups)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=min(4, len(labels)),
        frameon=False,
        title="a line for each seed",
    )
    return figure


def render(curves: Mapping[str, Curve]) -> str:
    """The same as a page of one file, whose lines tell their values to whoever points at them."""
    panels, groups = _layout(curves)
    charts = []
    for panel in panels:
        lines = [
            Line(label, groups.index(_group(label)), points)
            for label, curve in curves.items()
            if (points := _points(curve, panel))
        ]
        charts.append(draw_chart(PANELS[panel], lines, logarithmic=panel != "loss"))
    page = f'<h1>Runs over their epochs</h1><div class="charts">{"".join(charts)}</div>{draw_legend(groups)}'
    return document("Runs over their epochs", page + '<p class="soft">A line for each seed.</p>')


def _layout(curves: Mapping[str, Curve]) -> tuple[list[str], list[str]]:
    """The panels, and the groups of runs."""
    if not any(curves.values()):
        raise BcnError(f"nothing to draw: no epoch is finished in {', '.join(curves)}")
    measured = {name for curve in curves.values() for entry in curve for name in entry}
    if "relational" in measured:
        measured -= {"accuracy"}
    return [name for name in PANELS if name in measured], list(dict.fromkeys(map(_group, curves)))


def _group(label: str) -> str:
    return label.split(", seed")[0]


def _points(curve: Curve, panel: str) -> list[tuple[int, float]]:
    """Epochs and what is drawn of them: errors in percent, for accuracies."""
    points = [(entry["epoch"], entry[panel]) for entry in curve if entry.get(panel) is not None]
    return points if panel in ("loss", "localisation") else [(epoch, 100 - 100 * value) for epoch, value in points]


def _draw_panel(axis: Any, panel: str, curves: Mapping[str, Curve], groups: Sequence[str]) -> None:
    in_legend: set[str] = set()
    for label, curve in curves.items():
        group = _group(label)
        if not (points := _points(curve, panel)):
            continue
        epochs, errors = zip(*points, strict=True)
        colour, style = COLOURS[groups.index(group) % len(COLOURS)], "-" if groups.index(group) < 7 else "--"
        once = None if group in in_legend else group
        axis.plot(epochs, errors, style, color=colour, lw=1.2, label=once, marker="." if len(points) < 3 else None)
        in_legend.add(group)
    axis.set_xlabel("epoch")
    axis.locator_params("x", integer=True)
    axis.set_title(PANELS[panel], loc="left")
    axis.grid(alpha=0.3)
    if panel == "loss":
        axis.set_ylim(bottom=0)
    else:
        plain_logarithmic(axis)
        _to_the_foot(axis)


def _to_the_foot(axis: Any) -> None:
    """Draw zeros, which a logarithmic axis does not have, at its foot, with the tick 0."""
    heights = [height for line in axis.lines for height in line.get_ydata()]
    if all(height > 0 for height in heights):
        return
    foot = min((height for height in heights if height > 0), default=1) / 2
    for line in axis.lines:
        line.set_ydata([max(height, foot) for height in line.get_ydata()])
    _, top = axis.set_ylim(bottom=foot)
    ticks = [tick for tick in axis.get_yticks() if 1.5 * foot < tick <= top]
    axis.set_yticks([foot, *ticks], ["0", *(f"{tick:g}" for tick in ticks)])
