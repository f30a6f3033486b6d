"""Scenes of CLEVR's images, from `scenes/CLEVR_<split>_scenes.json`, the original's and ours: to train on or render."""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bcn.data.clevr_like.camera import HEIGHT, WIDTH, locate
from bcn.data.clevr_like.rules import COLORS, MATERIALS, SHAPES
from bcn.data.clevr_like.scene import LIGHTS, RELATIONS
from bcn.data.vqa.clevr import ATTRIBUTES
from bcn.data.vqa.json_stream import stream_list
from bcn.data.vqa.layouts import training_split
from bcn.data.vqa.question import parse_path
from bcn.errors import BcnError

MAX_OBJECTS = 16
"""of a scene that supervises training: a set of them is kept as the bits of a uint16"""
MAX_DRAWN, MAX_AWAY = 100, 1000.0
"""objects of a scene that is rendered, and coordinates of what is in it"""


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


def read_drawable_scenes(path: Path) -> Iterator[dict[str, Any]]:
    """The scenes of a file that are to be rendered: any of our shapes and colors, relationships or not.

    A scene that names no split is of the split "scenes".
    """
    for position, scene in enumerate(stream_list(path, "scenes")):
        if not _is_drawable(scene):
            raise BcnError(
                f"{path}, scene {position}: it cannot be rendered; it needs image_index, image_filename, 1 to "
                f"{MAX_DRAWN} objects, each with shape ({', '.join(SHAPES)}), material ({', '.join(MATERIALS)}), color "
                f"({', '.join(COLORS)}, or any with rgb), rotation and 3d_coords, and camera, or pixel_coords of its "
                "objects"
            )
        yield scene | {"split": scene.get("split", "scenes")}


def _is_drawable(scene: dict[str, Any]) -> bool:
    try:
        parse_path(scene, "image_filename")
        things, lights = scene["objects"], scene.get("lights")
        if not (
            type(scene["image_index"]) is int
            and 0 <= scene["image_index"] < 1 << 48
            and re.fullmatch(r"\w{1,64}", scene.get("split", "scenes"))
            and isinstance(things, list)
            and 1 <= len(things) <= MAX_DRAWN
            and all(map(_is_drawable_object, things))
            and (not lights or (len(lights) == len(LIGHTS) and all(_is_place(light) for light in lights)))
        ):
            return False
        eye: Any = scene.get("camera")
        if not eye and all(_is_point(t["pixel_coords"]) and max(map(abs, t["pixel_coords"])) < 1e6 for t in things):
            eye = locate(things)
        return _is_place(eye) and eye[0] ** 2 + eye[1] ** 2 > 0
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError):
        return False


def _is_drawable_object(thing: Any) -> bool:
    rgb = thing.get("rgb")
    return (
        thing["shape"] in SHAPES
        and thing["material"] in MATERIALS
        and (thing["color"] in COLORS if rgb is None else isinstance(thing["color"], str))
        and (rgb is None or (len(rgb) == 3 and all(type(level) is int and 0 <= level <= 255 for level in rgb)))
        and _is_place(thing["3d_coords"])
        and thing["3d_coords"][2] >= 1e-3
        and _is_number(thing["rotation"])
    )


def _is_place(value: Any) -> bool:
    return _is_point(value) and all(abs(number) <= MAX_AWAY for number in value) and any(value)


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
