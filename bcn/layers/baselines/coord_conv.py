"""CoordConv (Liu et al., 2018): convolutions that see where they are, by coordinate planes beside the map.

B images, C channels, H x W positions.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bcn.layers.baselines.conv_block import Block
from bcn.layers.coordinates import check_planes, planes_like


class CoordConv(nn.Module):
    """A block to drop in: F + conv1x1(relu(conv3x3([F, C]))).

    >>> CoordConv(24, 16)(torch.rand(2, 24, 8, 6)).shape
    torch.Size([2, 24, 8, 6])
    """

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.conv, self.out = nn.Conv2d(channels + 3, hidden, 3, padding=1), nn.Conv2d(hidden, channels, 1)

    def forward(self, map_BCHW: Tensor) -> Tensor:
        added_BCHW: Tensor = self.out(F.relu(self.conv(_with_planes(map_BCHW, "xyr", "centre"))))
        return map_BCHW + added_BCHW


class CoordBlock(nn.Module):
    """A `Block` over [map, planes].

    >>> CoordBlock(24, 24, stride=2)(torch.zeros(2, 24, 19, 19)).shape
    torch.Size([2, 24, 10, 10])
    """

    def __init__(
        self, channels: int, out_channels: int, *, stride: int = 1, planes: str = "xyr", origin: str = "centre"
    ) -> None:
        super().__init__()
        check_planes(planes, origin)
        self.planes, self.origin = planes, origin
        self.block = Block(channels + len(planes), out_channels, stride=stride)

    def forward(self, map_BCHW: Tensor) -> Tensor:
        seen = _with_planes(map_BCHW, self.planes, self.origin).contiguous(memory_format=torch.channels_last)
        blocked: Tensor = self.block(seen)
        return blocked


def _with_planes(map_BCHW: Tensor, planes: str, origin: str) -> Tensor:
    """[F, C]: the map and its coordinate planes."""
    planes_PHW = planes_like(map_BCHW, planes, origin)
    return torch.cat([map_BCHW, planes_PHW.expand(map_BCHW.shape[0], -1, -1, -1)], dim=1)
