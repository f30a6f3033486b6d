"""Scenes of CLEVR's images, from `scenes/CLEVR_<split>_scenes.json`, the original's and clevr-like-v1's."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bcn.data.clevr_like.camera import HEIGHT, WIDTH
from bcn.data.clevr_like.scene import RELATIONS
from bcn.data.vqa.clevr import ATTRIBUTES
from bcn.data.vqa.json_stream import stream_list
from bcn.data.vqa.layouts import training_split
from bcn.data.vqa.question import parse_path
from bcn.errors import BcnError

MAX_OBJECTS = 16
"""of a scene: a set of them is kept as the bits of a uint16"""


def scene_file(directory: Path) -> Path:
    """The scenes of the training split."""
    path = directory / "scenes" / f"CLEVR_{training_split(directory)}_scenes.json"
    if path.is_file():
        return path
    raise BcnError(f"{path}, which auxiliary supervision needs, is not there: get it, or train with auxiliary=none")


def object_centres(scene: dict[str, Any]) -> list[tuple[float, float]]:
    """x and y of the objects of a scene, in units of the image's width and height, from 0 to always below 1."""
    pixels = (thing["pixel_coords"] for thing in scene["objects"])
    return [(_within(x / WIDTH, 1 - 1 / WIDTH), _within(y / HEIGHT, 1 - 1 / HEIGHT)) for x, y, _ in pixels]


def _within(value: float, most: float) -> float:
    return min(max(value, 0.0), most)


def read_scenes(path: Path) -> Iterator[dict[str, Any]]:
    """The scenes of a file, one at a time."""
    for position, scene in enumerate(stream_list(path, "scenes")):
        if not _is_scene(scene):
            raise BcnError(
                f"{path}, scene {position}: it does not have an image, 1 to {MAX_OBJECTS} objects and their "
                "relationships as CLEVR's scenes do; get the file again"
            )
        yield scene


def _is_scene(scene: dict[str, Any]) -> bool:
    try:
        objects, relations = scene["objects"], scene["relationships"]
        parse_path(scene, "image_filename")
        return (
            isinstance(scene["image_filename"], str)
            and isinstance(scene["image_index"], int)
            and 0 <= scene["image_index"] < 1 << 63
            and isinstance(objects, list)
            and 1 <= len(objects) <= MAX_OBJECTS
            and all(map(_is_object, objects))
            and all(_is_relation(relations[name], len(objects)) for name in RELATIONS)
        )
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError):
        return False


def _is_object(thing: Any) -> bool:
    return (
        all(thing[attribute] in values for attribute, values in ATTRIBUTES.items())
        and _is_point(thing["pixel_coords"])
        and _is_point(thing.get("3d_coords", [0, 0, 0]))
        and _is_number(thing.get("rotation", 0))
    )


def _is_point(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 3 and all(map(_is_number, value))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _is_relation(relation: Any, objects: int) -> bool:
    """For each object, the others that stand in this relation to it."""
    return len(relation) == objects and all(
        isinstance(index, int) and 0 <= index < objects for related in relation for index in related
    )
