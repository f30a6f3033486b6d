"""How an image becomes a tensor: files, PIL images and arrays in, uint8 pixels of a model's size out.

Training and inference read images through the same functions. `Preprocessing` of `dataset.py` then makes uint8 pixels
the floats that a model sees.

B images in a batch, C x H x W pixels.
"""

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from bcn.data.decode import ACCEPTED, decode_image, to_rgb_or_gray
from bcn.errors import BcnError

ImageInput = Image.Image | np.ndarray | str | Path
"""what is accepted as an image: a PIL image, an array of uint8 (H, W) or (H, W, 3), or the path of a file"""
MIN_SIDE = 8
"""shortest side, in pixels, in which something may be seen"""
MAX_SIDE = 4096
"""longest side, in pixels, that is accepted where an image keeps its aspect ratio"""


def read_image(source: ImageInput) -> Image.Image:
    """Read an image of any accepted type, as `to_rgb_or_gray` gives it."""
    if isinstance(source, str | Path):
        return _from_file(source)
    if isinstance(source, np.ndarray):
        image = _from_array(source)
    elif isinstance(source, Image.Image):
        image = source
    else:
        raise BcnError(f"a {type(source).__name__} is no image: accepted are a path, a PIL image or an array of uint8")
    if 0 in image.size:
        raise BcnError(f"the image has {image.width}x{image.height} pixels: give one that is not empty")
    try:
        return to_rgb_or_gray(image)
    except (OSError, SyntaxError, ValueError) as error:
        raise BcnError(f"the image cannot be read: {error}") from error


def _from_array(pixels: np.ndarray) -> Image.Image:
    if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[2] != 3):
        raise BcnError(
            f"an array of {pixels.dtype} of {pixels.shape} is no image: "
            "accepted is uint8 of (height, width) or (height, width, 3)"
        )
    return Image.fromarray(pixels)


def _from_file(path: str | Path) -> Image.Image:
    try:
        return decode_image(path)
    except (FileNotFoundError, IsADirectoryError) as error:
        raise BcnError(f"there is no image {path}: give the path of a {ACCEPTED} file") from error
    except (OSError, ValueError) as error:
        raise BcnError(f"{path} cannot be read as an image: {error}; give a whole {ACCEPTED} file") from error


def find_doubt(image: Image.Image) -> str | None:
    """Why nothing can be seen in an image, if so: it is tiny or blank.

    >>> find_doubt(Image.new("RGB", (2, 2)))
    'it has only 2x2 pixels'
    """
    if min(image.size) < MIN_SIDE:
        return f"it has only {image.width}x{image.height} pixels"
    bands = image.getextrema()
    pairs = bands if isinstance(bands[0], tuple) else (bands,)
    return "it is blank" if all(low == high for low, high in pairs) else None


def check_sides(image: Image.Image) -> Image.Image:
    """Refuse an image with a side above MAX_SIDE."""
    if max(image.size) > MAX_SIDE:
        raise BcnError(
            f"the image has {image.width}x{image.height} pixels: each side may have 1 to {MAX_SIDE}, so make it smaller"
        )
    return image


def resize(image: Image.Image, size: tuple[int, int, int]) -> np.ndarray:
    """(C, H, W) uint8 of exactly `size`, whatever the aspect ratio: how data sets with questions in words are read."""
    _, height, width = size
    resized = image.convert("RGB").resize((width, height), Image.Resampling.BILINEAR)
    return np.array(resized).transpose(2, 0, 1)


def fit(image: Image.Image, size: tuple[int, int, int]) -> np.ndarray:
    """(C, H, W) uint8 with the aspect ratio kept and the shorter side as long as that of `size`.

    Models with one channel expect light ink on a dark background, so an image that is mostly light is inverted.

    Args:
        image: what `read_image` gives.
        size: channels, height and width that the model was trained with.
    """
    channels, side = size[0], min(size[1:])
    scale = side / min(check_sides(image).size)
    if max(image.size) * scale > MAX_SIDE:
        raise BcnError(
            f"the image has {image.width}x{image.height} pixels: with the shorter side at {side}, as the model takes "
            f"it, the longer one may have up to {MAX_SIDE}, so cut it"
        )
    if scale != 1:
        fitted = (max(side, round(image.width * scale)), max(side, round(image.height * scale)))
        # a box filter restores exactly an image that was enlarged by a whole number
        image = image.resize(fitted, Image.Resampling.BOX if scale < 1 else Image.Resampling.BILINEAR)
    if channels == 3:
        return np.array(image.convert("RGB")).transpose(2, 0, 1)
    pixels_HW = np.array(image.convert("L"))
    return (255 - pixels_HW if np.median(pixels_HW) > 127 else pixels_HW)[None]


def repeat_edges(image_BCHW: Tensor, padding: int) -> Tensor:
    """Images with their outermost pixels repeated on each side. On a GPU, torch's own padding refuses bytes."""
    top, bottom = image_BCHW[:, :, :1], image_BCHW[:, :, -1:]
    tall = torch.cat([top.expand(-1, -1, padding, -1), image_BCHW, bottom.expand(-1, -1, padding, -1)], dim=2)
    left, right = tall[..., :1], tall[..., -1:]
    return torch.cat([left.expand(-1, -1, -1, padding), tall, right.expand(-1, -1, -1, padding)], dim=3)


def random_crop(padded_BCHW: Tensor, padding: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Crop each image of a batch at a position of its own: augmentation by translation.

    Args:
        padded_BCHW: images with `padding` more pixels on each side than the crops will have.

    Returns:
        The crops, and (B, 2) by how many pixels each image moved to the right and down.
    """
    batch, _, height, width = padded_BCHW.shape
    corner_2B = torch.randint(2 * padding + 1, (2, batch), generator=generator, device=generator.device)
    top, left = corner_2B.to(padded_BCHW.device, non_blocking=True)
    crops_BCYXHW = padded_BCHW.unfold(2, height - 2 * padding, 1).unfold(3, width - 2 * padding, 1)
    crop_BCHW = crops_BCYXHW[torch.arange(batch, device=padded_BCHW.device), :, top, left]
    return crop_BCHW, padding - corner_2B.flip(0).t()


def random_zoom(image_BCHW: Tensor, zoom: float, generator: torch.Generator) -> Tensor:
    """Make each image smaller by up to `zoom`, at a position of its own, its edge repeated: nothing leaves the image.

    Args:
        image_BCHW: uint8.
        zoom: 0.25 shows up to a quarter more than the image on each side length.
    """
    batch = len(image_BCHW)
    draw_B3 = torch.rand(batch, 3, generator=generator, device=generator.device).to(image_BCHW.device)
    scale_B = 1 + zoom * draw_B3[:, 0]
    theta_B23 = torch.zeros(batch, 2, 3, device=image_BCHW.device)
    theta_B23[:, 0, 0] = theta_B23[:, 1, 1] = scale_B
    theta_B23[:, :, 2] = (scale_B - 1)[:, None] * (2 * draw_B3[:, 1:] - 1)
    grid_BHW2 = F.affine_grid(theta_B23, list(image_BCHW.shape), align_corners=False)
    zoomed_BCHW = F.grid_sample(image_BCHW.float(), grid_BHW2, padding_mode="border", align_corners=False)
    return zoomed_BCHW.round().to(torch.uint8)
