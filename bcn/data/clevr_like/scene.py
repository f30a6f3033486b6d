"""Scenes of clevr-like-v1: 3 to 10 objects on a plane, in the JSON of CLEVR's scenes.

A scene is a function of (seed, split, index) and of nothing else: it is drawn from the raw bits of Philox, which are
the same everywhere. The rules are the original's (Johnson et al. 2017): at least 0.25 between objects, at least 0.4
between them along each of the four directions, so that no relation is ambiguous, and every object visible.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bcn.data.clevr_like import camera
from bcn.data.random import RandomStream
from bcn.data.vqa.clevr import ATTRIBUTES

SHAPES, MATERIALS = ATTRIBUTES["shape"], ATTRIBUTES["material"]
SIZES = {"large": 0.7, "small": 0.35}
COLORS = {
    "gray": (87, 87, 87),
    "red": (173, 35, 35),
    "blue": (42, 75, 215),
    "green": (29, 105, 20),
    "brown": (129, 74, 25),
    "purple": (129, 38, 192),
    "cyan": (41, 208, 208),
    "yellow": (255, 238, 51),
}
RELATIONS = ("left", "right", "front", "behind")

EXTENT = 3.0
GAP = 0.25
MARGIN = 0.4
EPSILON = 0.2
"""further than this along a direction counts as a relation, as in the original"""

COARSE = 4
"""visibility is counted on every fourth pixel of every fourth row"""
VISIBLE = 200
"""pixels of 480 x 320 that every object shows"""

LIGHTS = ((5.74, -2.53, 3.89), (-4.72, -3.89, 2.97), (-1.10, 2.37, 5.46))
"""key, fill and back light, fitted to the ground and highlights of original images; each is jittered by up to 1"""


def make_scene(index: int, *, split: str = "train", seed: int = 0) -> dict[str, Any]:
    """One scene.

    >>> scene = make_scene(0)
    >>> scene["image_filename"], 3 <= len(scene["objects"]) <= 10
    ('CLEVR_train_000000.png', True)
    """
    rng = RandomStream(seed, split, index)
    count = 3 + rng.integer(8)
    towards = camera.directions()
    while True:
        eye = [round(c + rng.uniform(-camera.JITTER, camera.JITTER), 4) for c in camera.POSITION]
        lights = [[round(c + rng.uniform(-1.0, 1.0), 4) for c in light] for light in LIGHTS]
        objects = _place(rng, count, towards)
        if objects and visible_pixels(objects, eye).min() >= VISIBLE:
            break
    for thing, (column, row, depth) in zip(
        objects, camera.project(eye, [thing["3d_coords"] for thing in objects]).tolist(), strict=True
    ):
        thing["pixel_coords"] = [round(column), round(row), round(depth, 4)]
    return {
        "image_index": index,
        "image_filename": f"CLEVR_{split}_{index:06d}.png",
        "split": split,
        "objects": objects,
        "relationships": relationships(objects, towards),
        "directions": towards,
        "camera": eye,
        "lights": lights,
    }


def _place(rng: RandomStream, count: int, towards: dict[str, list[float]]) -> list[dict[str, Any]]:
    """`count` objects at the required distances, or none when 50 attempts to place one failed."""
    objects: list[dict[str, Any]] = []
    for _ in range(count):
        size = rng.choice(tuple(SIZES))
        for _ in range(50):
            x, y = (round(rng.uniform(-EXTENT, EXTENT), 4) for _ in range(2))
            if all(_is_clear(x, y, SIZES[size], other, towards) for other in objects):
                break
        else:
            return []
        objects.append(
            {
                "shape": rng.choice(SHAPES),
                "color": rng.choice(tuple(COLORS)),
                "size": size,
                "material": rng.choice(MATERIALS),
                "rotation": round(rng.uniform(0.0, 360.0), 4),  # CLEVR rng degrees and turns by as many radians
                "3d_coords": [x, y, SIZES[size]],
            }
        )
    return objects


def _is_clear(x: float, y: float, radius: float, other: dict[str, Any], towards: dict[str, list[float]]) -> bool:
    other_x, other_y, other_radius = other["3d_coords"]
    dx, dy = x - other_x, y - other_y
    if math.sqrt(dx * dx + dy * dy) < radius + other_radius + GAP:
        return False
    return all(abs(dx * towards[name][0] + dy * towards[name][1]) >= MARGIN for name in ("right", "behind"))


def relationships(objects: Sequence[dict[str, Any]], towards: dict[str, list[float]]) -> dict[str, list[list[int]]]:
    """For each relation and object, the objects in that relation: `["left"][i]` are those to the left of object i."""
    table: dict[str, list[list[int]]] = {}
    for name in RELATIONS:
        along = [sum(p * d for p, d in zip(o["3d_coords"], towards[name], strict=True)) for o in objects]
        table[name] = [[j for j, b in enumerate(along) if b - a > EPSILON] for a in along]
    return table


def visible_pixels(objects: Sequence[dict[str, Any]], eye: ArrayLike) -> np.ndarray:
    """How many of 480 x 320 pixels show each object, counted on a coarse grid of rays from the camera."""
    position = np.asarray(eye, float)
    right, up, forward = camera.axes(position)
    columns = np.arange(COARSE / 2, camera.WIDTH, COARSE)
    rows = np.arange(COARSE / 2, camera.HEIGHT, COARSE)
    depth = np.full((len(rows), len(columns)), np.inf)
    shown = np.full(depth.shape, -1)
    for number, thing in enumerate(objects):
        column, row, distance = camera.project(position, thing["3d_coords"]).tolist()
        reach = 2 * camera.FOCAL * thing["3d_coords"][2] / (distance - 1)
        window = np.ix_(abs(rows - row) < reach, abs(columns - column) < reach)
        x = (columns[window[1]] - camera.WIDTH / 2) / camera.FOCAL
        y = (camera.HEIGHT / 2 - rows[window[0]]) / camera.FOCAL
        ray = forward + x[..., None] * right + y[..., None] * up
        hit = _first_hit(thing, position, ray)
        nearer = hit < depth[window]
        depth[window] = np.where(nearer, hit, depth[window])
        shown[window] = np.where(nearer, number, shown[window])
    return np.array([(shown == number).sum() for number in range(len(objects))]) * COARSE**2


def _first_hit(thing: dict[str, Any], position: np.ndarray, ray: np.ndarray) -> np.ndarray:
    """Where each ray hits the object, in units of the ray; infinity where it misses."""
    radius = thing["3d_coords"][2]
    angle = thing["rotation"]
    turn = np.array([[math.cos(angle), math.sin(angle), 0], [-math.sin(angle), math.cos(angle), 0], [0, 0, 1]])
    start = (turn * (position - np.array(thing["3d_coords"]))).sum(-1) / radius
    ray = (ray[..., None, :] * turn).sum(-1) / radius
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
