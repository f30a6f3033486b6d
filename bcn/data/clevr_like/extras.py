"""What a scene is known to show, as files beside its image: masks, boxes and depth, for detectors and segmentation.

- `masks/<split>/<name>.png` has a palette; a pixel is the number of the object at its centre: 0 none, 1 the first.
- `depth/<split>/<name>.png` has 16 bits; a pixel is the depth along the camera's axis in thousandths of the unit of
  `3d_coords`, as `pixel_coords` have it; 0 where nothing is or it is farther than 65.535.
- `annotations/instances_<split>.json` is in COCO's format, its categories are the shapes: the box around the visible
  part of each object, with its area and its mask; an object that is hidden has none.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from bcn.data.clevr_like.render import Survey, survey_scene
from bcn.data.clevr_like.rules import SHAPES
from bcn.errors import did_you_mean
from bcn.io import atomic_write

EXTRAS = ("masks", "boxes", "depth")
DEPTH_SCALE = 1000
"""levels of a depth image to a unit of length"""
MAX_ANNOTATED = 1000
"""objects of an image, at most: ids of annotations leave room for so many"""

Annotation = dict[str, Any]


def parse_extras(text: str) -> tuple[str, ...]:
    """
    >>> parse_extras("depth,masks"), parse_extras("")
    (('masks', 'depth'), ())
    """
    names = text.split(",") if text else []
    for name in names:
        if name not in EXTRAS:
            raise did_you_mean("extra", name, EXTRAS)
    return tuple(name for name in EXTRAS if name in names)


def extra_files(directory: Path, scene: dict[str, Any], extras: Iterable[str]) -> dict[str, Path]:
    """The images of a scene's masks and depth, as far as they are among the extras."""
    name = Path(scene["image_filename"]).with_suffix(".png")
    return {extra: directory / extra / scene["split"] / name for extra in extras if extra != "boxes"}


def write_extras(
    directory: Path, scene: dict[str, Any], extras: Iterable[str], *, width: int, height: int
) -> list[Annotation]:
    """Write the images that are missing; gives the annotations of the scene's objects."""
    from PIL import Image

    survey = survey_scene(scene, width=width, height=height)
    for extra, path in extra_files(directory, scene, extras).items():
        if path.exists():
            continue
        if extra == "masks":
            picture = Image.fromarray(mask_of(survey))
            picture.putpalette(PALETTE)
        else:
            picture = Image.fromarray(depth_of(survey))
        with atomic_write(path) as temporary:
            picture.save(temporary, format="PNG")
    return annotate(scene, survey)


def mask_of(survey: Survey) -> np.ndarray:
    """(height, width) uint8: 0 where no object is, n + 1 where object n is."""
    return (survey.number.clip(-1) + 1).astype(np.uint8)


def depth_of(survey: Survey) -> np.ndarray:
    """(height, width) uint16: thousandths of a unit, 0 where it does not fit."""
    scaled = np.where(np.isfinite(survey.depth), survey.depth, 0.0) * DEPTH_SCALE
    return np.where(scaled < 1 << 16, scaled.round().clip(0, (1 << 16) - 1), 0).astype(np.uint16)


def annotate(scene: dict[str, Any], survey: Survey) -> list[Annotation]:
    """The visible objects, in COCO's format."""
    annotations = []
    for number, thing in enumerate(scene["objects"]):
        shown = survey.number == number
        rows, columns = shown.any(axis=1).nonzero()[0], shown.any(axis=0).nonzero()[0]
        if not len(rows):
            continue
        left, top = int(columns[0]), int(rows[0])
        annotations.append(
            {
                "id": scene["image_index"] * MAX_ANNOTATED + number + 1,
                "image_id": scene["image_index"],
                "category_id": SHAPES.index(thing["shape"]) + 1,
                "bbox": [left, top, int(columns[-1]) + 1 - left, int(rows[-1]) + 1 - top],
                "area": int(shown.sum()),
                "iscrowd": 0,
                "segmentation": {"size": list(shown.shape), "counts": run_lengths(shown)},
                "attributes": {name: thing[name] for name in ("size", "color", "material", "shape")},
                "object": number,
            }
        )
    return annotations


def run_lengths(mask: np.ndarray) -> list[int]:
    """COCO's run lengths: column after column, how many pixels are off, then on, then off again.

    >>> run_lengths(np.array([[0, 1], [0, 1]], bool))
    [2, 2]
    """
    flat = np.concatenate([[False], mask.ravel(order="F"), [False]])
    changes = np.flatnonzero(flat[1:] != flat[:-1])
    ends = np.concatenate([[0], changes, [mask.size]])
    lengths = np.diff(ends)
    return [int(length) for length in (lengths if lengths[-1] else lengths[:-1])]


def write_annotations(
    path: Path,
    info: dict[str, Any],
    entries: Iterable[tuple[dict[str, Any], list[Annotation]]],
    *,
    width: int,
    height: int,
) -> None:
    """A file of instances in COCO's format, written image by image.

    Args:
        entries: each scene with its annotations.
    """
    with atomic_write(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
        categories = [{"id": number, "name": name} for number, name in enumerate(SHAPES, 1)]
        file.write(f'{{"info": {json.dumps(info)}, "categories": {json.dumps(categories)}, "annotations": [')
        images, separator = [], "\n"
        for scene, annotations in entries:
            images.append(
                {
                    "id": scene["image_index"],
                    "file_name": scene["image_filename"],
                    "width": width,
                    "height": height,
                }
            )
            for annotation in annotations:
                file.write(separator + json.dumps(annotation))
                separator = ",\n"
        file.write('\n], "images": [\n' + ",\n".join(map(json.dumps, images)) + "\n]}\n")


def annotations_file(directory: Path, split: str) -> Path:
    return directory / "annotations" / f"instances_{split}.json"


def _palette() -> list[int]:
    """Black, then 255 colors that differ from their neighbours: steps of the golden angle around the hue circle."""
    from colorsys import hsv_to_rgb

    hues = [hsv_to_rgb(number * 0.618034 % 1, 0.45 + 0.4 * (number % 3) / 2, 0.95) for number in range(255)]
    return [0, 0, 0, *(round(255 * channel) for color in hues for channel in color)]


PALETTE = _palette()
