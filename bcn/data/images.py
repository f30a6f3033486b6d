"""Image files as pixels: the same ones in training and when a model is asked.

C x H x W pixels.
"""

import numpy as np
from PIL import Image, ImageOps


def upright(image: Image.Image) -> Image.Image:
    """The image as RGB or, where it has no colours, as L, turned as its camera noted; transparent becomes white."""
    image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I;16"):
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.mode in ("I", "F"):
        raise ValueError("its pixels have 32 bits, and what is white is not known: save it with 8 or 16")
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image.convert("RGBA"))
    return image.convert("L" if image.mode in ("1", "L") else "RGB")


def squeeze(image: Image.Image, size: tuple[int, int, int]) -> np.ndarray:
    """(C, H, W) uint8 of exactly `size`, whatever the image's shape, as data sets with questions in words are read."""
    _, height, width = size
    resized = image.convert("RGB").resize((width, height), Image.Resampling.BILINEAR)
    return np.array(resized).transpose(2, 0, 1)
