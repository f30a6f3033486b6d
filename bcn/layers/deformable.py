"""The deformable rival of table 1: a map is resampled where a small convolution points, before an ordinary convolution.

B images, C channels, H x W positions, N = H * W.
"""

import torch
from torch import Tensor, nn


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
        dx_BCHW, dy_BCHW = self.offset(map_BCHW).chunk(2, dim=1)
        return resample(map_BCHW, dx_BCHW, dy_BCHW)


def resample(map_BCHW: Tensor, dx_BCHW: Tensor, dy_BCHW: Tensor) -> Tensor:
    """Read the map bilinearly at (x + dx, y + dy), channel by channel.

    Not `grid_sample`: its normalised coordinates round, and offsets of zero would not give back the map itself.
    """
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
