"""Coordinate attention (Hou et al., 2021): rows and columns are scaled by what their means say.

B images, C channels, H x W positions.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class CoordinateAttention(nn.Module):
    """F times a gate for each row and a gate for each column, from the means of rows and columns.

    >>> CoordinateAttention(24, 16)(torch.rand(2, 24, 8, 6)).shape
    torch.Size([2, 24, 8, 6])
    """

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(channels, hidden, 1, bias=False), nn.BatchNorm2d(hidden)
        self.of_rows, self.of_columns = (nn.Conv2d(hidden, channels, 1, bias=False) for _ in range(2))

    def forward(self, map_BCHW: Tensor) -> Tensor:
        means_BCL1 = torch.cat([map_BCHW.mean(dim=3), map_BCHW.mean(dim=2)], dim=2)[..., None]
        hidden_BhL1 = F.hardswish(self.norm(self.conv(means_BCL1)))
        rows_BhH1, columns_BhW1 = hidden_BhL1.split(list(map_BCHW.shape[2:]), dim=2)
        gate_BC1W = self.of_columns(columns_BhW1).sigmoid().transpose(2, 3)
        scaled_BCHW: Tensor = map_BCHW * gate_BC1W * self.of_rows(rows_BhH1).sigmoid()
        return scaled_BCHW
