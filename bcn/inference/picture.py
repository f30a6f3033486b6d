"""Pictures in and out: what a user gives as an image, the size a model knows, and a map laid over the image.

C x H x W pixels, h x w positions of the map that the BCN sees.
"""

from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from bcn.data.images import upright
from bcn.errors import BcnError
from bcn.io import atomic_write

Picture = Image.Image | np.ndarray | str | Path
"""a PIL image, an array of uint8 (H, W) or (H, W, 3), or where the file is"""
LARGEST = 4096
"""pixels of the longer side that are accepted where an image keeps its shape"""
INK = (214, 31, 214)
"""of the map: none of Sort-of-CLEVR's colours, and seen on white and on black"""
SHOWN = 450
"""the least height of a picture with its map"""


def read_picture(picture: Picture) -> Image.Image:
    """The image, upright, as RGB or, where it has no colours, as L; what is transparent becomes white."""
    if isinstance(picture, np.ndarray):
        if picture.dtype != np.uint8 or picture.ndim not in (2, 3) or (picture.ndim == 3 and picture.shape[2] != 3):
            given = f"{picture.dtype} of {picture.shape}"
            raise BcnError(f"an array of {given} is no image: accepted is uint8 of (height, width) or of (.., .., 3)")
        image = Image.fromarray(picture)
    elif isinstance(picture, Image.Image):
        image = picture
    elif not isinstance(picture, str | Path):
        raise BcnError(f"a {type(picture).__name__} is no image: accepted are a path, a PIL image or an array of uint8")
    else:
        try:
            with Image.open(picture) as file:
                file.load()
                image = file
        except (FileNotFoundError, IsADirectoryError) as error:
            raise BcnError(f"there is no image {picture}: give the path of a PNG, JPEG or other image file") from error
        except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError, ValueError) as error:
            raise BcnError(
                f"{picture} cannot be read as an image: give a whole PNG, JPEG or other image file"
            ) from error
    if 0 in image.size:
        raise BcnError(f"the image has {image.width}x{image.height} pixels: give one that is not empty")
    try:
        return upright(image)
    except (OSError, SyntaxError, ValueError) as error:
        raise BcnError(f"the image cannot be read: {error}") from error


def check_sides(image: Image.Image) -> Image.Image:
    """Refuse an image with a side that is too long."""
    if max(image.size) > LARGEST:
        raise BcnError(
            f"the image has {image.width}x{image.height} pixels: each side may have 1 to {LARGEST}, so make it smaller"
        )
    return image


def fit(image: Image.Image, size: tuple[int, int, int]) -> np.ndarray:
    """(C, H, W) uint8 for a model made for `size`: so many channels, the shorter side as long as the model's.

    Models of one channel know light ink on a dark ground; an image that is mostly light is inverted for them.
    """
    channels, side = size[0], min(size[1:])
    scale = side / min(check_sides(image).size)
    if max(image.size) * scale > LARGEST:
        raise BcnError(
            f"the image has {image.width}x{image.height} pixels: with the shorter side at {side}, as the model takes "
            f"it, the longer one may have up to {LARGEST}, so cut it"
        )
    if scale != 1:
        wanted = (max(side, round(image.width * scale)), max(side, round(image.height * scale)))
        # a box filter gives an image that was enlarged by a whole number back as it was
        image = image.resize(wanted, Image.Resampling.BOX if scale < 1 else Image.Resampling.BILINEAR)
    if channels == 3:
        return np.array(image.convert("RGB")).transpose(2, 0, 1)
    pixels_HW = np.array(image.convert("L"))
    return (255 - pixels_HW if np.median(pixels_HW) > 127 else pixels_HW)[None]


def overlay(image: Image.Image, count_hw: np.ndarray, *, centre: tuple[float, float] | None = None) -> Image.Image:
    """The image with a map over it: the more channels a position supplied, the less of the image is seen there.

    By the square root, so that a single channel is seen too. A cross marks the centre, given as shares of the sides.
    """
    scale = max(1, min(-(-SHOWN // image.height), LARGEST // max(image.size)))
    below = image.convert("RGB").resize((image.width * scale, image.height * scale), Image.Resampling.NEAREST)
    strength = np.sqrt(count_hw / max(1.0, float(count_hw.max())))
    mask = Image.fromarray((200 * strength).astype(np.uint8)).resize(below.size, Image.Resampling.NEAREST)
    below.paste(INK, mask=mask)
    if centre is not None:
        from PIL import ImageDraw

        pen = ImageDraw.Draw(below)
        x, y, arm = centre[0] * below.width, centre[1] * below.height, below.height / 20
        for width, ink in ((7, "black"), (3, "white")):
            pen.line([x - arm, y, x + arm, y], fill=ink, width=width)
            pen.line([x, y - arm, x, y + arm], fill=ink, width=width)
    return below


def write_picture(image: Image.Image, path: Path) -> None:
    """Write an image in the format that its name ends with."""
    kind = Image.registered_extensions().get(path.suffix.lower())
    if kind not in Image.SAVE:
        raise BcnError(f"{path} does not end like an image that can be written: use .png or .jpg")
    with atomic_write(path) as temporary:
        image.save(temporary, format=kind)
