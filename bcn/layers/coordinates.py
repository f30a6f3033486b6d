"""Coordinate planes for coordinate channel embedding (section 2, figure 2 of the paper).

P planes of height H and width W.
"""

import torch
from torch import Tensor

from bcn.errors import BcnError

ORIGINS = ("centre", "top-left")

CACHED = 64
"""sizes that are remembered"""

_cache: dict[tuple[object, ...], Tensor] = {}


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
    [-1, 1] and the shorter proportionally less; with the origin at the top left the longer side spans [0, 1]. Who asks
    again gets the same tensor: do not change it in place.

    >>> coordinate_planes(1, 3, "xr")
    tensor([[[-1.,  0.,  1.]],
    <BLANKLINE>
            [[ 1.,  0.,  1.]]])
    """
    check_planes(planes, origin)
    dtype = dtype or torch.get_default_dtype()
    device = torch.device(device or "cpu")
    if torch.compiler.is_compiling():  # a traced tensor must not outlive its trace, and a traced size is no key
        return _make(height, width, planes, origin).to(device=device, dtype=dtype)
    height, width = int(height), int(width)  # torch.jit.trace gives tensors
    key = (height, width, planes, origin, dtype, device)
    if key in _cache:
        return _cache[key]
    with torch.inference_mode(False):
        made = _make(height, width, planes, origin).to(device=device, dtype=dtype)
    if type(made) is Tensor:  # and not one of a mode that only pretends
        if len(_cache) >= CACHED:
            _cache.pop(next(iter(_cache)))
        _cache[key] = made
    return made


def planes_like(map_BCHW: Tensor, planes: str, origin: str) -> Tensor:
    """The planes of a map, of its height, width, type and device: (P, H, W)."""
    height, width = map_BCHW.shape[-2:]
    return coordinate_planes(height, width, planes, origin, dtype=map_BCHW.dtype, device=map_BCHW.device)


def check_planes(planes: str, origin: str) -> None:
    if origin not in ORIGINS:
        raise BcnError(f"origin {origin!r} is unknown: accepted are {' and '.join(map(repr, ORIGINS))}")
    if not isinstance(planes, str) or set(planes) - set("xyr") or len(set(planes)) < len(planes):
        raise BcnError(f"planes {planes!r} is unknown: accepted is any choice of the letters x, y and r, each once")


def _make(height: int, width: int, planes: str, origin: str) -> Tensor:
    longest = torch.sym_max(torch.sym_max(height, width) - 1, 1)
    y, x = (_axis(size, origin) / longest for size in (height, width))
    x, y = x.expand(height, width), y[:, None].expand(height, width)
    made = {"x": x, "y": y, "r": torch.hypot(x, y)}
    return torch.stack([made[plane] for plane in planes]) if planes else x.new_empty(0, height, width)


def _axis(size: int, origin: str) -> Tensor:
    """Whole numbers, so that after one division the axis is exactly symmetric about zero."""
    steps = torch.arange(size, dtype=torch.float64, device="cpu")
    return 2 * steps - (size - 1) if origin == "centre" else steps
