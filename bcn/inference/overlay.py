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


def overlay(image: Image.Image, count_hw: np.ndarray, *, centre: tuple[float, float] | None = None) -> Image.Image:
    """The image with a map over it, more opaque where more channels have their maximum.

    Opacity goes with the square root of the count, so that a single channel is visible too.

    Args:
        image: what the map is drawn over.
        count_hw: channels whose maximum is at each position.
        centre: x and y of a cross to draw, in units of the image's width and height.
    """
    scale = max(1, min(-(-MIN_HEIGHT // image.height), MAX_SIDE // max(image.size)))
    canvas = image.convert("RGB").resize((image.width * scale, image.height * scale), Image.Resampling.NEAREST)
    opacity = np.sqrt(count_hw / max(1.0, float(count_hw.max())))
    mask = Image.fromarray((200 * opacity).astype(np.uint8)).resize(canvas.size, Image.Resampling.NEAREST)
    canvas.paste(INK, mask=mask)
    if centre is not None:
        pen = ImageDraw.Draw(canvas)
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
