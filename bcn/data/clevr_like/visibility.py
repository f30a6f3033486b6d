"""Which object each ray from the camera hits first: what a scene shows, without its picture. Needs numpy alone."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bcn.data.clevr_like import camera
from bcn.data.clevr_like.rules import TUBE, radius_of

COARSE = 4
"""visibility is counted on every fourth pixel of every fourth row"""
MARCH, CLOSE = 48, 1e-2
"""steps towards a surface that has no formula, and how close the last of them has to come"""


def visible_pixels(objects: Sequence[dict[str, Any]], eye: ArrayLike) -> np.ndarray:
    """How many of 480 x 320 pixels show each object, counted on a coarse grid of rays from the camera."""
    shown = first_hits(objects, eye, COARSE)
    return np.array([(shown == number).sum() for number in range(len(objects))]) * COARSE**2


def first_hits(objects: Sequence[dict[str, Any]], eye: ArrayLike, step: int) -> np.ndarray:
    """Which object each ray from the camera hits first, -1 for none; a ray for every `step` of 480 x 320 pixels."""
    position = np.asarray(eye, float)
    right, up, forward = camera.axes(position)
    columns = np.arange(step / 2, camera.WIDTH, step)
    rows = np.arange(step / 2, camera.HEIGHT, step)
    depth = np.full((len(rows), len(columns)), np.inf)
    shown = np.full(depth.shape, -1)
    for number, thing in enumerate(objects):
        column, row, distance = camera.project(position, thing["3d_coords"]).tolist()
        reach = 2 * camera.FOCAL * radius_of(thing) / (distance - 1)
        window = np.ix_(abs(rows - row) < reach, abs(columns - column) < reach)
        x = (columns[window[1]] - camera.WIDTH / 2) / camera.FOCAL
        y = (camera.HEIGHT / 2 - rows[window[0]]) / camera.FOCAL
        ray = forward + x[..., None] * right + y[..., None] * up
        hit = _first_hit(thing, position, ray)
        nearer = hit < depth[window]
        depth[window] = np.where(nearer, hit, depth[window])
        shown[window] = np.where(nearer, number, shown[window])
    return shown


def _first_hit(thing: dict[str, Any], position: np.ndarray, ray: np.ndarray) -> np.ndarray:
    """Where each ray hits the object, in units of the ray; infinity where it misses."""
    radius = radius_of(thing)
    angle = thing["rotation"]
    turn = np.array([[math.cos(angle), math.sin(angle), 0], [-math.sin(angle), math.cos(angle), 0], [0, 0, 1]])
    start = (turn * (position - np.array(thing["3d_coords"]))).sum(-1) / radius
    ray = (ray[..., None, :] * turn).sum(-1) / radius
    if thing["shape"] in ("cone", "torus"):
        return _march(_distance_to_cone if thing["shape"] == "cone" else _distance_to_torus, start, ray)
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = -(start + np.sign(ray)) / ray, (np.sign(ray) - start) / ray  # where it enters and leaves each slab
        if thing["shape"] == "cube":
            enter, leave = low.max(-1), high.min(-1)
        else:
            axes = 3 if thing["shape"] == "sphere" else 2  # the cylinder is a disc in x and y, and a slab in z
            a = (ray[..., :axes] ** 2).sum(-1)
            b = (ray[..., :axes] * start[:axes]).sum(-1)
            root = np.sqrt(b * b - a * ((start[:axes] ** 2).sum() - 1))
            enter, leave = (-b - root) / a, (-b + root) / a
            if axes == 2:
                enter, leave = np.maximum(enter, low[..., 2]), np.minimum(leave, high[..., 2])
        return np.where(enter <= leave, enter, np.inf)


def _march(distance: Callable[[np.ndarray], np.ndarray], start: np.ndarray, ray: np.ndarray) -> np.ndarray:
    """Where each ray hits a surface: it goes on by the distance to it, which it cannot overshoot (sphere tracing)."""
    length = np.sqrt((ray * ray).sum(-1, keepdims=True))
    along = np.maximum(math.sqrt((start * start).sum()) - 2, 0.0) + np.zeros_like(length)
    for _ in range(MARCH):
        away = distance(start + along * ray / length)[..., None]
        along = along + away
    return np.where(away < CLOSE, along / length, np.inf)[..., 0]


def _distance_to_cone(point: np.ndarray) -> np.ndarray:
    """At most the distance to a cone of radius 1 and height 2 around the origin."""
    across = np.sqrt(point[..., 0] ** 2 + point[..., 1] ** 2)
    return np.asarray(np.maximum((2 * across + point[..., 2] - 1) / math.sqrt(5), -1 - point[..., 2]))


def _distance_to_torus(point: np.ndarray) -> np.ndarray:
    across = np.sqrt(point[..., 0] ** 2 + point[..., 1] ** 2)
    return np.asarray(np.sqrt((across - 1 + TUBE) ** 2 + point[..., 2] ** 2) - TUBE)
