"""Draws the pictures of docs/reference/sort-of-clevr.md into docs/images: `python docs/make_pictures.py`."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from bcn.data.sort_of_clevr.dataset import LEGACY, V1, make_sort_of_clevr
from bcn.data.sort_of_clevr.drawing import DISC, draw_scenes
from bcn.data.sort_of_clevr.scene import SIDE, Scenes
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


def main(directory: Path = IMAGES) -> None:
    few = [make_sort_of_clevr(V1, "train", images=3, objects=objects)[[1]].image[0].numpy() for objects in (2, 3, 4, 5)]
    sheets = {
        "sort-of-clevr-v1.png": montage(
            list(make_sort_of_clevr(V1, "train", images=8)[np.arange(8)].image.numpy()), columns=4
        ),
        "sort-of-clevr-objects.png": montage(few, columns=4),
        "sort-of-clevr-legacy-faults.png": montage(faults(), columns=2),
        "sort-of-clevr-pixels.png": pixels(),
    }
    for name, sheet in sheets.items():
        with atomic_write(directory / name) as temporary:
            sheet.quantize(16).save(temporary, format="PNG", optimize=True)
        print(directory / name)


if __name__ == "__main__":
    main()
