"""Convolutional block attention (CBAM, Woo et al., 2018): channels are scaled first, positions after that.

B images, C channels, H x W positions.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Cbam(nn.Module):
    """Channels by an MLP over means and maxima of the map, positions by a 7x7 convolution over those of the channels.

    >>> Cbam(24, 16)(torch.rand(2, 24, 8, 6)).shape
    torch.Size([2, 24, 8, 6])
    """

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Conv2d(channels, hidden, 1, bias=False), nn.Conv2d(hidden, channels, 1, bias=False)
        self.conv, self.norm = nn.Conv2d(2, 1, 7, padding=3, bias=False), nn.BatchNorm2d(1)

    def forward(self, map_BCHW: Tensor) -> Tensor:
        pooled = (map_BCHW.mean(dim=(2, 3), keepdim=True), map_BCHW.amax(dim=(2, 3), keepdim=True))
        mean_BC11, max_BC11 = (self.fc2(F.relu(self.fc1(part_BC11))) for part_BC11 in pooled)
        map_BCHW = map_BCHW * (mean_BC11 + max_BC11).sigmoid()
        over_channels_B2HW = torch.cat([map_BCHW.mean(dim=1, keepdim=True), map_BCHW.amax(dim=1, keepdim=True)], dim=1)
        scaled_BCHW: Tensor = map_BCHW * self.norm(self.conv(over_channels_B2HW)).sigmoid()
        return scaled_BCHW
