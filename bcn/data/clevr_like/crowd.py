"""Scenes of more objects than CLEVR's, 11 to 20: closer together, and placed so that few attempts are in vain.

Large objects come first. Each stands on a point of a grid that all before it leave free. Then, as long as one is
hidden, it is placed anew.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bcn.data.clevr_like.rules import EXTENT, SIZES, radius_of
from bcn.data.clevr_like.visibility import visible_pixels
from bcn.data.random import RandomStream

GAP, MARGIN = 0.05, 0.205
"""least distances between objects, and between their centres along each direction"""
VISIBLE = 100
"""pixels of 480 x 320 that every object shows"""
STEP = 0.03
"""of the grid of positions"""
MOVES = 60
"""of hidden objects before all are placed anew"""

Thing = dict[str, Any]


class Ground:
    """The points where an object may stand, on a grid."""

    def __init__(self, towards: dict[str, list[float]]) -> None:
        self.axes = [towards[name][:2] for name in ("right", "behind")]
        side = np.arange(-EXTENT, EXTENT + STEP / 2, STEP).round(2)
        self.points = self._points(np.repeat(side, len(side)), np.tile(side, len(side)))

    def _points(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """x, y, and how far each is along right and behind."""
        return np.stack([x, y, *(x * a + y * b for a, b in self.axes)])

    def free(self, points: np.ndarray, reach: float, objects: Sequence[Thing]) -> np.ndarray:
        """Those of the points where an object of a radius of `reach` is apart from others."""
        for thing in objects:
            at = self._points(*(np.array([c]) for c in thing["3d_coords"][:2]))
            dx, dy, right, behind = points - at
            apart = dx * dx + dy * dy >= (reach + radius_of(thing) + GAP) ** 2
            points = points[:, apart & (abs(right) >= MARGIN) & (abs(behind) >= MARGIN)]
        return points


def place_crowd(
    rng: RandomStream,
    count: int,
    eye: Sequence[float],
    towards: dict[str, list[float]],
    draw: Callable[[str, float, float], Thing],
) -> list[Thing]:
    """`count` objects, all apart and visible, or none where this attempt finds no place for one.

    Args:
        eye: position of the camera.
        towards: the relations' directions.
        draw: an object of a size at x and y.
    """
    ground, objects = Ground(towards), list[Thing]()
    sizes = sorted(rng.choice(tuple(SIZES)) for _ in range(count))  # large comes first in the alphabet too
    for size in sizes:
        if not objects or objects[-1]["size"] != size:
            points = ground.free(ground.points, SIZES[size], objects)
        if not points.shape[1]:
            return []
        objects.append(draw(size, *_choose(rng, points)))
        points = ground.free(points, SIZES[size], objects[-1:])
    for _ in range(MOVES):
        hidden = np.flatnonzero(visible_pixels(objects, eye) < VISIBLE).tolist()
        if not hidden:
            return objects
        moved = rng.choice(hidden)
        others = objects[:moved] + objects[moved + 1 :]
        points = ground.free(ground.points, SIZES[sizes[moved]], others)
        if not points.shape[1]:
            return []
        objects[moved] = draw(sizes[moved], *_choose(rng, points))
    return []


def _choose(rng: RandomStream, points: np.ndarray) -> tuple[float, float]:
    x, y = points[:2, rng.integer(points.shape[1])].tolist()
    return x, y
