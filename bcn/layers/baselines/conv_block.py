"""The block that every CNN of the paper is stacked of: a 3x3 convolution, then ReLU, then BatchNorm (section 5.2).

B images, C channels, H x W positions.
"""

import torch
from torch import Tensor, nn


class Block(nn.Module):
    """Convolution 3x3 -> ReLU -> BatchNorm, in this order; the map keeps its size, divided by the stride.

    >>> Block(24, 24, stride=2)(torch.zeros(2, 24, 19, 19)).shape
    torch.Size([2, 24, 10, 10])
    """

    def __init__(
        self, channels: int, out_channels: int, *, stride: int | tuple[int, int] = 1, dilation: int = 1
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, out_channels, 3, stride=stride, padding=dilation, dilation=dilation)
        self.norm = nn.BatchNorm2d(out_channels)

    def forward(self, map_BCHW: Tensor) -> Tensor:
        normed: Tensor = self.norm(torch.relu_(self.conv(map_BCHW)))
        return normed
