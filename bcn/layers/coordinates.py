"""Coordinate planes for coordinate channel embedding (section 2, figure 2 of the paper).

Those of the last maps are kept: computing them anew takes 80 of the 900 microseconds of one question about an image.

P planes of height H and width W.
"""

from functools import lru_cache

import torch
from torch import Tensor

from bcn.errors import BcnError
from bcn.layers.fused.dispatch import has_values, on_accelerator

ORIGINS = ("centre", "top-left")


def coordinate_planes(
    height: int,
    width: int,
    planes: str = "xyr",
    origin: str = "centre",
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> Tensor:
    """The planes x, y and r (distance from the origin) of a map, in the order in which `planes` names them: (P, H, W).

    One step to the right or down is the same length everywhere. With the origin at the centre the longer side spans
    [-1, 1] and the shorter proportionally less; with the origin at the top left the longer side spans [0, 1].

    >>> coordinate_planes(1, 3, "xr")
    tensor([[[-1.,  0.,  1.]],
    <BLANKLINE>
            [[ 1.,  0.,  1.]]])

    Args:
        planes: any choice of the letters x, y and r, each once.
        origin: "centre" or "top-left".
    """
    check_planes(planes, origin)
    if not torch.compiler.is_compiling():
        height, width = int(height), int(width)  # torch.jit.trace gives tensors
    longest = torch.sym_max(torch.sym_max(height, width) - 1, 1)
    y, x = (_axis(size, origin) / longest for size in (height, width))
    x, y = x.expand(height, width), y[:, None].expand(height, width)
    by_letter = {"x": x, "y": y, "r": torch.hypot(x, y)}
    stacked = torch.stack([by_letter[letter] for letter in planes]) if planes else x.new_empty(0, height, width)
    return stacked.to(dtype or torch.get_default_dtype()).to(device or "cpu")  # Apple's GPUs have no float64


def planes_like(map_BCHW: Tensor, planes: str, origin: str) -> Tensor:
    """The planes of a map, of its height, width, type and device: (P, H, W)."""
    height, width = map_BCHW.shape[-2:]
    make = _kept_planes if has_values(map_BCHW) or on_accelerator(map_BCHW) else coordinate_planes
    return make(height, width, planes, origin, dtype=map_BCHW.dtype, device=map_BCHW.device)


@lru_cache(maxsize=16)
def _kept_planes(
    height: int, width: int, planes: str, origin: str, *, dtype: torch.dtype, device: torch.device
) -> Tensor:
    with torch.inference_mode(False), torch.no_grad():  # for training too, if evaluation is the first to ask for them
        return coordinate_planes(height, width, planes, origin, dtype=dtype, device=device)


def check_planes(planes: str, origin: str) -> None:
    if origin not in ORIGINS:
        raise BcnError(f"origin {origin!r} is unknown: accepted are {' and '.join(map(repr, ORIGINS))}")
    if not isinstance(planes, str) or set(planes) - set("xyr") or len(set(planes)) < len(planes):
        raise BcnError(f"planes {planes!r} is unknown: accepted is any choice of the letters x, y and r, each once")


def _axis(size: int, origin: str) -> Tensor:
    """Whole numbers, so that after one division the axis is exactly symmetric about zero."""
    steps = torch.arange(size, dtype=torch.float64, device="cpu")
    return 2 * steps - (size - 1) if origin == "centre" else steps
