"""Scenes like CLEVR's: by default 3 to 10 objects on a plane, in the JSON of CLEVR's scenes.

A scene is a function of (seed, split, index) and of nothing else: it is drawn from the raw bits of Philox, which are
the same everywhere. The rules are the original's (Johnson et al. 2017): at least 0.25 between objects, at least 0.4
between them along each of the four directions, so that no relation is ambiguous, and every object visible. Scenes of
more than ten objects, which the original does not have, are closer together.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from bcn.data.clevr_like import camera
from bcn.data.clevr_like.crowd import place_crowd
from bcn.data.clevr_like.rules import CLEVR_RULES, COLORS, EXTENT, MATERIALS, SIZES, TUBE, SceneRules, radius_of
from bcn.data.clevr_like.visibility import visible_pixels
from bcn.data.random import RandomStream
from bcn.errors import BcnError

RELATIONS = ("left", "right", "front", "behind")

GAP, MARGIN = 0.25, 0.4
"""least distances between objects, and between their centres along each direction"""
CROWD = 10
"""the most objects of a scene of the original; `crowd.py` places more"""
EPSILON = 0.2
"""further than this along a direction counts as a relation, as in the original"""
ATTEMPTS, CROWD_ATTEMPTS = 20_000, 200
"""at placing all objects of a scene"""

VISIBLE = 200
"""pixels of 480 x 320 that every object shows"""

LIGHTS = ((5.74, -2.53, 3.89), (-4.72, -3.89, 2.97), (-1.10, 2.37, 5.46))
"""key, fill and back light, fitted to the ground and highlights of original images; each is jittered by up to 1"""


def make_scene(index: int, *, split: str = "train", seed: int = 0, rules: SceneRules = CLEVR_RULES) -> dict[str, Any]:
    """One scene.

    Args:
        rules: what its objects are drawn from.

    >>> scene = make_scene(0)
    >>> scene["image_filename"], 3 <= len(scene["objects"]) <= 10
    ('CLEVR_train_000000.png', True)
    """
    rng = RandomStream(seed, split, index)
    fewest, most = rules.objects
    count = fewest + rng.integer(most - fewest + 1)
    towards = camera.directions()
    attempts = ATTEMPTS if count <= CROWD else CROWD_ATTEMPTS
    for _ in range(attempts):
        eye = [round(c + rng.uniform(-camera.JITTER, camera.JITTER), 4) for c in camera.POSITION]
        lights = [[round(c + rng.uniform(-1.0, 1.0), 4) for c in light] for light in LIGHTS]
        if count > CROWD:
            objects = place_crowd(rng, count, eye, towards, partial(_draw_object, rng, rules))
        else:
            objects = _place(rng, count, eye, towards, rules)
        if objects:
            break
    else:
        raise BcnError(
            f"scene {index} of {split} with seed {seed}: {attempts:,} attempts to place {count} objects, all apart and "
            "visible, failed; ask for fewer with --objects, or take another seed"
        )
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
        **({"attributes": rules.attributes} if rules.attributes else {}),
    }


def _place(
    rng: RandomStream, count: int, eye: list[float], towards: dict[str, list[float]], rules: SceneRules
) -> list[dict[str, Any]]:
    """`count` objects, all apart and visible, or none when 50 attempts to place one failed or one is hidden."""
    objects: list[dict[str, Any]] = []
    for _ in range(count):
        size = rng.choice(tuple(SIZES))
        for _ in range(50):
            x, y = (round(rng.uniform(-EXTENT, EXTENT), 4) for _ in range(2))
            if all(_is_clear(x, y, SIZES[size], other, towards) for other in objects):
                break
        else:
            return []
        objects.append(_draw_object(rng, rules, size, x, y))
    return objects if visible_pixels(objects, eye).min() >= VISIBLE else []


def _draw_object(rng: RandomStream, rules: SceneRules, size: str, x: float, y: float) -> dict[str, Any]:
    colors = dict(rules.colors)
    shape, color = rng.choice(rules.shapes), rng.choice(tuple(colors))
    thing = {
        "shape": shape,
        "color": color,
        "size": size,
        "material": rng.choice(MATERIALS),
        "rotation": round(rng.uniform(0.0, 360.0), 4),  # CLEVR draws degrees and turns by as many radians
        "3d_coords": [x, y, round(SIZES[size] * TUBE, 4) if shape == "torus" else SIZES[size]],
    }
    return thing if colors[color] == COLORS.get(color) else thing | {"rgb": list(colors[color])}


def _is_clear(x: float, y: float, radius: float, other: dict[str, Any], towards: dict[str, list[float]]) -> bool:
    other_x, other_y, _ = other["3d_coords"]
    dx, dy = x - other_x, y - other_y
    if math.sqrt(dx * dx + dy * dy) < radius + radius_of(other) + GAP:
        return False
    return all(abs(dx * towards[name][0] + dy * towards[name][1]) >= MARGIN for name in ("right", "behind"))


def relationships(objects: Sequence[dict[str, Any]], towards: dict[str, list[float]]) -> dict[str, list[list[int]]]:
    """For each relation and object, the objects in that relation: `["left"][i]` are those to the left of object i."""
    table: dict[str, list[list[int]]] = {}
    for name in RELATIONS:
        along = [sum(p * d for p, d in zip(o["3d_coords"], towards[name], strict=True)) for o in objects]
        table[name] = [[j for j, b in enumerate(along) if b - a > EPSILON] for a in along]
    return table
