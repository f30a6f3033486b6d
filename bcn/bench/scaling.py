"""`bcn bench scaling`: what a relation costs as the number of objects grows (section 3: O(n) where RN pays O(n^2))."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from bcn.bench.jobs import relation, relation_layer
from bcn.bench.measure import Spread, alternate, threads
from bcn.bench.memory import peak_memory
from bcn.layers.relation import PairRelation
from bcn.training.environment import keep_memory

OBJECTS = (25, 100, 400, 900, 1600, 3600, 6400)
KINDS = ("multirn", "rn")
FITTED_FROM = 400
"""exponents are fitted from here on, where the fixed cost of a call no longer counts"""


def macs(kind: str, objects: int) -> int:
    """Multiply-accumulates of one question about so many objects, forward, as we run them.

    >>> macs("rn", 100) - 100**2 * 3 * 256 * 256  # what is not in the three further layers over all pairs
    1385216
    """
    relation = relation_layer(kind)
    *of_objects, of_question = (part.numel() for part in relation.g.first.parts())
    rest = sum(layer.weight.numel() for layer in relation.g.rest)
    if isinstance(relation, PairRelation):
        return objects * sum(of_objects) + objects**2 * rest + of_question
    assert relation.broadcast is not None
    of_map, of_vector, of_planes = of_objects
    bcn = sum(layer.weight.numel() for layer in (relation.broadcast.k.first, *relation.broadcast.k.rest))
    return objects * (bcn + of_map + of_planes + rest) + of_vector + of_question


def bench_scaling(*, rounds: int, seconds: float, longest: float, say: Callable[[str], None]) -> dict[str, Any]:
    """Forward and backward at one thread; a size that would take longer than `longest` seconds a call is left out."""
    keep_memory()
    found: dict[str, Any] = {kind: {"seconds": {}, "low": {}, "high": {}, "bytes": {}} for kind in KINDS}
    with threads(1):
        for objects in OBJECTS:
            cases = {kind: relation(kind, objects) for kind in KINDS if expected(found[kind], kind, objects) < longest}
            say(f"{objects} objects: {' and '.join(cases)}")
            for kind, timing in alternate(dict(cases), rounds=rounds, seconds=seconds).items():
                spread = Spread.of(timing.rounds)
                found[kind]["seconds"][objects] = spread.median
                found[kind]["low"][objects], found[kind]["high"][objects] = spread.low, spread.high
                found[kind]["bytes"][objects] = peak_memory("relation", kind, str(objects))
    for kind in KINDS:
        found[kind]["macs"] = {objects: macs(kind, objects) for objects in OBJECTS}
        found[kind]["exponent"] = exponent(found[kind]["seconds"])
        found[kind]["exponent_of_macs"] = exponent(found[kind]["macs"])
    return found


def expected(so_far: dict[str, Any], kind: str, objects: int) -> float:
    """The seconds that a call will take, from the size before it."""
    if not so_far["seconds"]:
        return 0.0
    before, took = list(so_far["seconds"].items())[-1]
    return float(took * macs(kind, objects) / macs(kind, before))


def exponent(cost: dict[int, float]) -> float | None:
    """The slope of log cost over log objects, by least squares.

    >>> round(exponent({400: 1.0, 1600: 4.0, 6400: 16.0}), 6)
    1.0
    """
    points = [(math.log(objects), math.log(value)) for objects, value in cost.items() if objects >= FITTED_FROM]
    if len(points) < 2:
        return None
    x, y = torch.tensor(points, dtype=torch.float64).t()
    x, y = x - x.mean(), y - y.mean()
    return float((x * y).sum() / (x * x).sum())


def draw(found: dict[str, Any], path: Path) -> None:
    """Time and memory against objects, log-log, with the multiply-accumulates as lines."""
    from bcn.paper.figures.style import COLOURS, canvas, plain_logarithmic, write

    figure, ((left, right),) = canvas(1, 2, size=(10, 4.2))
    for kind, name, colour in zip(KINDS, ("multiRN", "RN"), COLOURS, strict=False):
        cost = {int(objects): value for objects, value in found[kind]["seconds"].items()}
        lines = {
            int(objects): value for objects, value in found[kind]["macs"].items() if objects in found[kind]["seconds"]
        }
        scale = list(cost.values())[-1] / lines[list(cost)[-1]]
        label = f"{name}: time grows as $n^{{{found[kind]['exponent']:.2f}}}$" if found[kind]["exponent"] else name
        left.plot(list(cost), [1e3 * value for value in cost.values()], "o", color=colour, label=label)
        left.plot(list(lines), [1e3 * scale * value for value in lines.values()], "-", color=colour, lw=1, alpha=0.6)
        memory = {objects: value for objects, value in found[kind]["bytes"].items() if value}
        right.plot([int(n) for n in memory], [value / 1e6 for value in memory.values()], "o-", color=colour, label=name)
    for axes, title in (
        (left, "milliseconds (points); multiply-accumulates, scaled to the last point (lines)"),
        (right, "peak memory, MB"),
    ):
        axes.set(xscale="log", xlabel="objects n", title=title)
        plain_logarithmic(axes)
        axes.grid(alpha=0.3)
        axes.legend()
    figure.suptitle("One question, forward and backward, one thread")
    write(figure, path)
