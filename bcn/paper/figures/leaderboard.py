"""The leaderboard: accuracy against the cost of an answer, and against the number of objects in a scene."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bcn.paper.figures.style import COLOURS, canvas
from bcn.paper.recipes.leaderboard import NUMBERS, SEEN

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bcn.paper.leaderboard import Entry

MARKERS = "osD^v<>PX*hp"


def draw(entries: Sequence["Entry"]) -> "Figure":
    """Filled markers for models of pixels, open ones and dashed lines for models of objects."""
    figure, axes = canvas(1, 2, size=(11, 4.4))
    cost, number = axes[0]
    for index, entry in enumerate(entries):
        colour, marker = COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)]
        face = "none" if entry.of_states else colour
        accuracy, (_, macs) = entry.accuracy("all"), entry.cost
        style = {"color": colour, "marker": marker, "mfc": face, "ms": 6}
        cost.errorbar(macs, accuracy.mean, accuracy.spread, capsize=3, ls="none", label=entry.name, **style)
        cells = {n: entry.accuracy("binary", name).mean for n, name in NUMBERS.items()}
        points = [(n, value) for n, value in cells.items() if value is not None]
        if points:
            number.plot(*zip(*points, strict=True), ls="--" if entry.of_states else "-", lw=1.1, **style)
    cost.set_xscale("log")
    cost.set_xlabel("multiply-accumulates for one question")
    cost.set_ylabel("accuracy, all questions, %")
    number.axvspan(min(SEEN) - 0.5, max(SEEN) + 0.5, color="#000000", alpha=0.06, lw=0)
    number.set_xticks(list(NUMBERS))
    number.set_xlabel("objects in a scene; grey: in training")
    number.set_ylabel("accuracy, binary questions, %")
    for axis in (cost, number):
        axis.grid(alpha=0.3)
    figure.legend(*cost.get_legend_handles_labels(), loc="outside right upper", frameon=False)
    return figure
