"""Draws the pictures of Sort-of-CLEVR and of clevr-like's extras into docs/images: `python docs/make_pictures.py`."""

import math
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from bcn.data.clevr_like.extras import PALETTE, annotate, mask_of
from bcn.data.clevr_like.render import render_scene, survey_scene
from bcn.data.clevr_like.rules import COLORS, SHAPES, SceneRules
from bcn.data.clevr_like.scene import make_scene
from bcn.data.sort_of_clevr.dataset import LEGACY, V1, make_sort_of_clevr
from bcn.data.sort_of_clevr.drawing import DISC, draw_scenes
from bcn.data.sort_of_clevr.scene import SIDE, Scenes
from bcn.data.sort_of_clevr_v2 import BY_CORRUPTION, V2, V2_STREAM, make_sort_of_clevr_v2
from bcn.io import atomic_write

IMAGES = Path(__file__).parent / "images"
SCALE = 3
GAP = 6


def montage(images: list[np.ndarray], *, columns: int) -> Image.Image:
    """Images of (3, 75, 75) in rows, enlarged, each with a thin frame."""
    side = SIDE * SCALE
    rows = -(-len(images) // columns)
    sheet = Image.new("RGB", (GAP + columns * (side + GAP), GAP + rows * (side + GAP)), "white")
    for number, image_3HW in enumerate(images):
        left, top = GAP + number % columns * (side + GAP), GAP + number // columns * (side + GAP)
        picture = Image.fromarray(np.ascontiguousarray(image_3HW.transpose(1, 2, 0)))
        sheet.paste(picture.resize((side, side), Image.Resampling.NEAREST), (left, top))
        ImageDraw.Draw(sheet).rectangle((left - 1, top - 1, left + side, top + side), outline="silver")
    return sheet


def pixels() -> Image.Image:
    """The pixels of a square and of a circle, one by one, the centre marked."""
    cell = 16
    sheet = Image.new("RGB", (27 * cell, 13 * cell), "white")
    pen = ImageDraw.Draw(sheet)
    for left, mask in ((1, np.ones((11, 11), dtype=bool)), (15, DISC.reshape(11, 11))):
        for v in range(11):
            for u in range(11):
                fill = "white" if not mask[v, u] else "black" if u == v == 5 else "orange"
                x, y = (left + u) * cell, (1 + v) * cell
                pen.rectangle((x, y, x + cell, y + cell), fill=fill, outline="silver")
    return sheet


def faults() -> list[np.ndarray]:
    """Legacy scenes: one where squares overlap, one with an object whose nearest is of another shape and far away."""
    scenes = make_sort_of_clevr(LEGACY, "train", images=1).scenes(np.arange(500))
    x, y, shape = (part.astype(int) for part in scenes[:3])
    dx, dy = abs(x[:, :, None] - x[:, None]), abs(y[:, :, None] - y[:, None])
    other = ~np.eye(6, dtype=bool)
    both_squares = (shape[:, :, None] == 0) & (shape[:, None] == 0) & other
    overlap = (both_squares & (np.maximum(dx, dy) < 9)).any(axis=(1, 2))
    away = np.where(other, dx**2 + dy**2, 10**6)
    lonely = (away.min(axis=2) > 999) & (np.take_along_axis(shape, away.argmin(axis=2), axis=1) != shape)
    chosen = [int(np.flatnonzero(overlap)[0]), int(np.flatnonzero(lonely.any(axis=1))[0])]
    return list(draw_scenes(Scenes(*(part[chosen] for part in scenes))))


def v2(images: int, **options: Any) -> list[np.ndarray]:
    """The first images of v2's stream."""
    return list(make_sort_of_clevr_v2(V2_STREAM, "train", images=1, **options)[np.arange(images)].image.numpy())


def ternary() -> Image.Image:
    """One scene three times: the box of two objects, the line between them, the places where an angle is obtuse."""
    dataset = make_sort_of_clevr_v2(V2, "train", images=1)
    scenes, image = dataset.scenes([0]), dataset[[0]].image[0].numpy()
    colours = scenes.colour[0].tolist()
    a, b = (
        (int(scenes.x[0, colours.index(colour)]), int(scenes.y[0, colours.index(colour)])) for colour in (3, 5)
    )  # orange and yellow
    sheet, side = montage([image] * 3, columns=3), SIDE * SCALE
    pen = ImageDraw.Draw(sheet)

    def on_sheet(panel: int, x: float, y: float) -> tuple[float, float]:
        return GAP + panel * (side + GAP) + SCALE * (x + 0.5), GAP + SCALE * (y + 0.5)

    (left, right), (top, bottom) = sorted((a[0], b[0])), sorted((a[1], b[1]))
    pen.rectangle((*on_sheet(0, left, top), *on_sheet(0, right, bottom)), outline="black")
    pen.line((*on_sheet(1, *a), *on_sheet(1, *b)), fill="black")
    across = np.array([b[1] - a[1], a[0] - b[0]]) / math.dist(a, b)
    for away in (-8, -4, 4, 8):
        ends = [on_sheet(1, *(np.array(end) + away * across)) for end in (a, b)]
        pen.line((*ends[0], *ends[1]), fill="gray" if abs(away) == 4 else "silver")
    middle, radius = np.add(a, b) / 2, math.dist(a, b) / 2
    pen.ellipse((*on_sheet(2, *(middle - radius)), *on_sheet(2, *(middle + radius))), outline="black")
    pen.line((*on_sheet(2, *a), *on_sheet(2, *b)), fill="black")
    for end in (a, b):  # beyond these lines the angle at an end is obtuse
        ends = [on_sheet(2, *(np.array(end) + reach * across)) for reach in (-24, 24)]
        pen.line((*ends[0], *ends[1]), fill="black")
    return sheet


def rendered() -> Image.Image:
    """Two scenes of all shapes, of 8 and of 20 objects: image, masks, boxes and depth."""
    width, height, rows = 240, 160, []
    for index, count in ((0, 8), (2, 20)):
        scene = make_scene(
            index, rules=SceneRules(SHAPES, (*COLORS.items(), ("orange", (235, 130, 30))), (count, count))
        )
        image, survey = render_scene(scene, width=width, height=height), survey_scene(scene, width=width, height=height)
        masks = np.array(PALETTE, np.uint8).reshape(-1, 3)[mask_of(survey)]
        near, far = survey.depth.min(), survey.depth.max()
        depth = (255 * (far - survey.depth) / (far - near)).astype(np.uint8)
        boxes = Image.fromarray(image)
        for annotation in annotate(scene, survey):
            left, top, wide, high = annotation["bbox"]
            ImageDraw.Draw(boxes).rectangle((left, top, left + wide - 1, top + high - 1), outline="white")
        rows.append([image, masks, np.asarray(boxes), np.repeat(depth[..., None], 3, axis=2)])
    sheet = Image.new("RGB", (GAP + 4 * (width + GAP), GAP + len(rows) * (height + GAP)), "white")
    for row, pictures in enumerate(rows):
        for column, picture in enumerate(pictures):
            sheet.paste(Image.fromarray(picture), (GAP + column * (width + GAP), GAP + row * (height + GAP)))
    return sheet


def main(directory: Path = IMAGES) -> None:
    few = [make_sort_of_clevr(V1, "train", images=3, objects=objects)[[1]].image[0].numpy() for objects in (2, 3, 4, 5)]
    sheets = {
        "sort-of-clevr-v1.png": montage(
            list(make_sort_of_clevr(V1, "train", images=8)[np.arange(8)].image.numpy()), columns=4
        ),
        "sort-of-clevr-objects.png": montage(few, columns=4),
        "sort-of-clevr-legacy-faults.png": montage(faults(), columns=2),
        "sort-of-clevr-pixels.png": pixels(),
        "sort-of-clevr-v2.png": montage([v2(2, objects=objects)[1] for objects in range(1, 13)], columns=6),
        "sort-of-clevr-v2-ternary.png": ternary(),
        "sort-of-clevr-v2-varied.png": montage(v2(12, picture="varied"), columns=6),
        "sort-of-clevr-v2-corruptions.png": montage(
            [v2(1, picture=picture, objects=6)[0] for picture in ("exact", *BY_CORRUPTION)], columns=5
        ),
    }
    for name, sheet in sheets.items():
        drawn = sheet if name.endswith(("varied.png", "corruptions.png")) else sheet.quantize(16)
        with atomic_write(directory / name) as temporary:
            drawn.save(temporary, format="PNG", optimize=True)
        print(directory / name)


def draw_rendered(directory: Path = IMAGES) -> None:
    """What the path tracer draws is the same on other machines up to rounding only."""
    with atomic_write(directory / "clevr-like-extras.png") as temporary:
        rendered().save(temporary, format="PNG", optimize=True)
    print(directory / "clevr-like-extras.png")


if __name__ == "__main__":
    main()
    draw_rendered()
