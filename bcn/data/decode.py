"""Image files from strangers: which decoders see them, and how much memory they may ask for.

Every image that the package reads, from a data set, `bcn ask` or a request to the server, goes through `decode_image`.
"""

from pathlib import Path
from typing import IO

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
"""the decoders of Pillow that see a file; of the others EPS would run Ghostscript, and few are used or tested much"""
ACCEPTED = "PNG, JPEG, WebP, GIF, BMP or TIFF"
TILE_WIDTH, TILE_LENGTH = 322, 323
"""tags of a TIFF file"""


def decode_image(source: str | Path | IO[bytes], *, max_side: int | None = None) -> Image.Image:
    """Decode an image file, as `to_rgb_or_gray` gives it.

    Raises `ValueError` with the reason where it is not a whole image of one of FORMATS or has more pixels than
    `PIL.Image.MAX_IMAGE_PIXELS`, and `OSError` where there is no such file.

    Args:
        source: the path of a file, or an open one.
        max_side: the longest side, in pixels, that is accepted.
    """
    try:
        with Image.open(source, formats=FORMATS) as image:
            _check_size(image, max_side)
            image.load()
            _check_size(image, max_side)  # a decoder may find another size than the header has
            return to_rgb_or_gray(image)
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except UnidentifiedImageError as error:
        raise ValueError(f"it is not a {ACCEPTED} file") from error
    except Image.DecompressionBombError as error:
        raise ValueError("it has too many pixels") from error
    except Exception as error:  # in a damaged file, decoders stumble over anything
        raise ValueError(str(error) or "it is damaged") from error


def _check_size(image: Image.Image, max_side: int | None) -> None:
    """Refuse an image that is too large, and let go of what has been decoded of it."""
    width, height = image.size
    tags = getattr(image, "tag_v2", {})
    # a tile of a TIFF file is decoded whole, however small the image is
    pixels = max(width * height, int(tags.get(TILE_WIDTH, 0)) * int(tags.get(TILE_LENGTH, 0)))
    most = max_side**2 if max_side is not None else Image.MAX_IMAGE_PIXELS
    if max_side is not None and max(width, height) > max_side:
        reason = f"it has {width}x{height} pixels, and each side may have 1 to {max_side}"
    elif most is not None and pixels > most:
        reason = f"it has {pixels:,} pixels, and at most {most:,} are accepted"
    else:
        return
    image.close()
    raise ValueError(reason)


def to_rgb_or_gray(image: Image.Image) -> Image.Image:
    """The image with its EXIF orientation applied, as RGB or, if it has no colours, as L; transparent becomes white."""
    image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I;16"):
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.mode in ("I", "F"):
        raise ValueError("its pixels have 32 bits, and the value of white is unknown: save it with 8 or 16")
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image.convert("RGBA"))
    return image.convert("L" if image.mode in ("1", "L") else "RGB")
