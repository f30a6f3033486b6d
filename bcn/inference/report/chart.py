"""Lines over epochs as an SVG in a page; whoever points at them reads the values."""

import json
import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from bcn.inference.report.document import LIGHT, text

WIDTH, HEIGHT = 380, 230
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 10, 34
"""margins around the plot"""


class Line(NamedTuple):
    label: str
    group: int
    """lines of a group share a colour"""
    points: Sequence[tuple[int, float]]
    """epochs and values"""

    @property
    def style(self) -> str:
        """Classes of the page: a colour, and dashes where colours are used up."""
        return f"c{self.group % len(LIGHT)}" + (" dashed" if self.group >= len(LIGHT) else "")


class Axis(NamedTuple):
    """From values to pixels upwards."""

    low: float
    high: float
    logarithmic: bool

    @classmethod
    def around(cls, values: Sequence[float], *, logarithmic: bool) -> "Axis":
        """From zero, or where it is logarithmic from the smallest value above it."""
        if not logarithmic:
            return cls(0.0, ticks(0.0, max(values) or 1.0)[-1], False)
        above = [value for value in values if value > 0] or [1.0]
        low, high = min(above), max(above)
        return cls(low / (2 if min(values) <= 0 else 1.1), high * 1.1, True)

    def place(self, value: float) -> float:
        """The pixel of a value; zero is at the foot of a logarithmic axis."""
        low, high, value = (
            (math.log(each) for each in (self.low, self.high, max(value, self.low)))
            if self.logarithmic
            else (self.low, self.high, value)
        )
        return HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    def ticks(self) -> list[float]:
        if not self.logarithmic:
            return ticks(self.low, self.high)
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        digits = (1, 2, 5) if self.high > 10 * self.low else (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)
        candidates = [digit * 10.0**power for power in powers for digit in digits]
        inside = [tick for tick in candidates if self.low <= tick <= self.high]
        return inside if len(inside) > 1 else [self.low, self.high]


def ticks(low: float, high: float) -> list[float]:
    """Round numbers from `low`, a multiple of their distance, to `high` or beyond.

    >>> ticks(0, 0.73)
    [0.0, 0.2, 0.4, 0.6, 0.8]
    """
    rough = (high - low) / 4 or 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(digit * power for digit in (1, 2, 5, 10) if digit * power >= 0.9 * rough)
    return [round(low + step * index, 10) for index in range(math.ceil((high - low) / step - 1e-9) + 1)]


def draw_chart(title: str, lines: Sequence[Line], *, logarithmic: bool = False, unit: str = "", best: int = 0) -> str:
    """A figure of a page.

    Args:
        lines: none without points.
        unit: written after values.
        best: an epoch to mark, the one whose weights are kept; 0 is none.
    """
    epochs = [epoch for line in lines for epoch, _ in line.points]
    first, last = min(epochs), max(epochs)
    axis = Axis.around([value for line in lines for _, value in line.points], logarithmic=logarithmic)

    def across(epoch: float) -> float:
        return round(LEFT + (epoch - first) / max(1, last - first) * (WIDTH - LEFT - RIGHT), 1)

    parts = []
    for tick in axis.ticks():
        y = round(axis.place(tick), 1)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{tick:.3g}</text>')
    whole = sorted({round(tick) for tick in ticks(0, last) if first <= round(tick) <= last} | {first, last})
    # The ends are named; what would touch them is not.
    shown = [tick for tick in whole if tick in (first, last) or min(tick - first, last - tick) > (last - first) / 8]
    for tick in shown:
        parts.append(f'<text x="{across(tick)}" y="{HEIGHT - 16}" text-anchor="middle">{tick}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 2}" text-anchor="middle">epoch</text>')
    if best:
        x = across(best)
        parts.append(f'<line class="best dashed" x1="{x}" x2="{x}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
    data = []
    for line in lines:
        places = [(across(epoch), round(axis.place(value), 1)) for epoch, value in line.points]
        if len(places) == 1:
            parts.append(f'<circle class="dot {line.style}" cx="{places[0][0]}" cy="{places[0][1]}" r="3"/>')
        else:
            path = " ".join(f"{x},{y}" for x, y in places)
            parts.append(f'<polyline class="line {line.style}" points="{path}"/>')
        points = [[across(epoch), epoch, f"{value:.4g}{unit}"] for epoch, value in line.points]
        colour, dashed = line.group % len(LIGHT), line.group >= len(LIGHT)
        data.append({"label": line.label, "colour": colour, "dashed": dashed, "points": points})
    parts.append(f'<line class="marker" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
    return f"""<figure class="chart"><figcaption>{text(title)}</figcaption>
<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{text(title)}" data-lines="{escape(json.dumps(data))}">
{"".join(parts)}</svg><div class="tip" hidden></div></figure>"""


def draw_legend(groups: Sequence[str]) -> str:
    """The names of the groups, in their order."""
    keys = (
        f'<li><span class="key {Line(name, number, ()).style}"></span>{text(name)}</li>'
        for number, name in enumerate(groups)
    )
    return f'<ul class="legend">{"".join(keys)}</ul>'
