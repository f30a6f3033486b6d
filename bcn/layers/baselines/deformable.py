"""The deformable baseline of table 1: a map is resampled where a small convolution points, before its convolution.

B images, C channels, H x W positions, N = H * W.
"""

import ctypes
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from bcn.errors import BcnError
from bcn.layers.fused import native
from bcn.layers.fused.check import pointer
from bcn.layers.fused.dispatch import may_fuse
from bcn.layers.fused.threads import run_shares, share_images

MAX_SIDE = 1 << 24
"""positions along a side that 32-bit floats tell apart"""


class Deform(nn.Module):
    """Move every value of every channel by a learned (dx, dy), in positions; places outside the map are its border.

    The offsets come from a 3x3 convolution without bias that starts at zero, so a new layer changes nothing.

    >>> map_BCHW = torch.rand(2, 3, 5, 7)
    >>> torch.equal(Deform(3)(map_BCHW), map_BCHW)
    True
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.offset = nn.Conv2d(channels, 2 * channels, 3, padding=1, bias=False)
        nn.init.zeros_(self.offset.weight)

    def forward(self, map_BCHW: Tensor) -> Tensor:
        return resample(map_BCHW, self.offset(map_BCHW))


def resample(map_BCHW: Tensor, offset: Tensor) -> Tensor:
    """Read the map bilinearly at (x + dx, y + dy), channel by channel; `offset` (B, 2C, H, W) has all dx, then all dy.

    Not `grid_sample`: its normalised coordinates round, and offsets of zero would not give back the map itself. In C
    for 32-bit floats on the CPU.
    """
    images, channels, height, width = map_BCHW.shape
    if offset.shape != (images, 2 * channels, height, width):
        raise BcnError(
            f"offsets have the shape {tuple(offset.shape)}: accepted is {(images, 2 * channels, height, width)}, dx "
            "and dy for every value of the map"
        )
    fuse = may_fuse(map_BCHW, offset, operator=False) and native.load_library("resample") is not None
    if fuse and max(height, width) <= MAX_SIDE and map_BCHW.dtype == offset.dtype == torch.float32:
        sampled: Tensor = _Resample.apply(map_BCHW, offset)  # type: ignore[no-untyped-call]
        return sampled
    return resample_in_torch(map_BCHW, offset)


class _Resample(torch.autograd.Function):
    """The loops of csrc/resample.c, in channels_last order; threads share out the images."""

    @staticmethod
    def forward(ctx: Any, map_BCHW: Tensor, offset: Tensor) -> Tensor:
        map_BCHW, offset = (x.contiguous(memory_format=torch.channels_last) for x in (map_BCHW, offset))
        ctx.save_for_backward(map_BCHW, offset)
        sampled = torch.empty_like(map_BCHW)
        _call("bcn_resample", map_BCHW, offset, sampled)
        return sampled

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        map_BCHW, offset = ctx.saved_tensors
        grad_map, grad_offset = torch.zeros_like(map_BCHW), torch.empty_like(offset)
        grad = grad.contiguous(memory_format=torch.channels_last)
        _call("bcn_resample_backward", map_BCHW, offset, grad, grad_map, grad_offset)
        return grad_map, grad_offset


def _call(name: str, map_BCHW: Tensor, offset: Tensor, *others: Tensor) -> None:
    """The map, the offsets, and others that are as large as the one or the other, in the order of the C function."""
    function = getattr(native.load_library("resample"), name)
    _, channels, height, width = map_BCHW.shape
    sizes = [ctypes.c_long(size) for size in (height, width, channels)]
    channels_of = [channels, 2 * channels, channels, channels, 2 * channels][: 2 + len(others)]

    def run(images: range) -> None:
        addresses = [
            pointer(x[images.start : images.stop], (len(images), of, height, width), memory_format=torch.channels_last)
            for x, of in zip((map_BCHW, offset, *others), channels_of, strict=True)
        ]
        function(ctypes.c_long(len(images)), *sizes, *addresses)

    run_shares(run, share_images(len(map_BCHW)))


def resample_in_torch(map_BCHW: Tensor, offset: Tensor) -> Tensor:
    """The same for other floats and devices."""
    dx_BCHW, dy_BCHW = offset.chunk(2, dim=1)
    height, width = map_BCHW.shape[-2:]
    row_H1 = torch.arange(height, device=map_BCHW.device, dtype=map_BCHW.dtype)[:, None]
    column_W = torch.arange(width, device=map_BCHW.device, dtype=map_BCHW.dtype)
    y = (row_H1 + dy_BCHW).clamp(0, height - 1)
    x = (column_W + dx_BCHW).clamp(0, width - 1)
    top, left = y.detach().floor(), x.detach().floor()
    down, right = y - top, x - left
    first_row, first_column = top.long(), left.long()
    last_row, last_column = (first_row + 1).clamp(max=height - 1), (first_column + 1).clamp(max=width - 1)
    flat_BCN = map_BCHW.flatten(2)

    def at(row: Tensor, column: Tensor) -> Tensor:
        return flat_BCN.gather(2, (row * width + column).flatten(2)).view_as(map_BCHW)

    upper = torch.lerp(at(first_row, first_column), at(first_row, last_column), right)
    lower = torch.lerp(at(last_row, first_column), at(last_row, last_column), right)
    return torch.lerp(upper, lower, down)
