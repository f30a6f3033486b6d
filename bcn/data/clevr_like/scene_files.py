"""Scenes of CLEVR's images, from `scenes/CLEVR_<split>_scenes.json`, the original's and clevr-like-v1's."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bcn.data.clevr_like.camera import HEIGHT, WIDTH
from bcn.data.clevr_like.scene import RELATIONS
from bcn.data.vqa.clevr import ATTRIBUTES
from bcn.data.vqa.json_stream import stream_list
from bcn.data.vqa.layouts import training_split
from bcn.errors import BcnError


def scene_file(directory: Path) -> Path:
    """The scenes of the training split."""
    path = directory / "scenes" / f"CLEVR_{training_split(directory)}_scenes.json"
    if path.is_file():
        return path
    raise BcnError(f"{path}, which auxiliary supervision needs, is not there: get it, or train with auxiliary=none")


def object_centres(scene: dict[str, Any]) -> list[tuple[float, float]]:
    """x and y of the objects of a scene, in units of the image's width and height, always below 1."""
    pixels = (thing["pixel_coords"] for thing in scene["objects"])
    return [(min(x / WIDTH, 1 - 1 / WIDTH), min(y / HEIGHT, 1 - 1 / HEIGHT)) for x, y, _ in pixels]


def read_scenes(path: Path) -> Iterator[dict[str, Any]]:
    """The scenes of a file, one at a time."""
    for position, scene in enumerate(stream_list(path, "scenes")):
        if not _is_scene(scene):
            raise BcnError(
                f"{path}, scene {position}: it does not have an image, objects and relationships as CLEVR's scenes do; "
                "get the file again"
            )
        yield scene


def _is_scene(scene: Any) -> bool:
    try:
        objects, relations = scene["objects"], scene["relationships"]
        return (
            isinstance(scene["image_filename"], str)
            and isinstance(scene["image_index"], int)
            and all(thing[attribute] in values for thing in objects for attribute, values in ATTRIBUTES.items())
            and all(len(thing["pixel_coords"]) == 3 for thing in objects)
            and all(len(relations[name]) == len(objects) for name in RELATIONS)
        )
    except (LookupError, TypeError):
        return False
