"""Images out: the BCN's map laid over an image, and image files.

h x w positions of the map that the BCN sees.
"""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from bcn.data.images import MAX_SIDE
from bcn.errors import BcnError
from bcn.io import atomic_write

INK = (214, 31, 214)
"""colour of the map: none of Sort-of-CLEVR's, visible on white and on black"""
MIN_HEIGHT = 450
"""smaller images are enlarged to at least this height"""
SMALLEST, LARGEST = 0.25, 0.9
"""sides of the squares of one channel and of the most, as shares of a cell"""


def overlay(
    image: Image.Image,
    count_hw: np.ndarray,
    edges: tuple[np.ndarray, np.ndarray],
    *,
    centre: tuple[float, float] | None = None,
) -> Image.Image:
    """The image with a map over it: squares around positions, larger where more channels have their maximum.

    Squares are outlines, so that the colours of the image stay what they are. Their area goes with the count.

    Args:
        image: what the map is drawn over.
        count_hw: channels whose maximum is at each position.
        edges: of the positions' cells, from 0 to 1 down and across the image, as `Broadcast.edges` gives them.
        centre: x and y of a cross to draw, in units of the image's width and height.
    """
    scale = max(1, min(-(-MIN_HEIGHT // image.height), MAX_SIDE // max(image.size)))
    canvas = image.convert("RGB").resize((image.width * scale, image.height * scale), Image.Resampling.NEAREST)
    pen = ImageDraw.Draw(canvas)
    y_edges, x_edges = canvas.height * edges[0], canvas.width * edges[1]
    line = max(1, round(min(np.diff(y_edges).max(), np.diff(x_edges).max()) / 12))
    share_hw = np.sqrt(count_hw / max(1.0, float(count_hw.max())))
    margin_hw = (1 - SMALLEST - (LARGEST - SMALLEST) * share_hw) / 2
    for row, column in np.argwhere(count_hw):
        (top, bottom), (left, right) = y_edges[row : row + 2], x_edges[column : column + 2]
        x, y = margin_hw[row, column] * (right - left), margin_hw[row, column] * (bottom - top)
        for width, ink in ((line + 2, "white"), (line, INK)):
            pen.rectangle((left + x, top + y, right - x, bottom - y), outline=ink, width=width)
    if centre is not None:
        x, y, arm = centre[0] * canvas.width, centre[1] * canvas.height, canvas.height / 20
        for width, ink in ((7, "black"), (3, "white")):
            pen.line([x - arm, y, x + arm, y], fill=ink, width=width)
            pen.line([x, y - arm, x, y + arm], fill=ink, width=width)
    return canvas


def write_image(image: Image.Image, path: Path) -> None:
    """Write an image in the format of its file name's suffix."""
    kind = Image.registered_extensions().get(path.suffix.lower())
    if kind not in Image.SAVE:
        raise BcnError(f"{path} does not end like an image that can be written: use .png or .jpg")
    with atomic_write(path) as temporary:
        image.save(temporary, format=kind)
