"""Squeeze-and-excitation (Hu et al., 2018): every channel is scaled by what the mean of the whole map says.

B images, C channels, H x W positions.
"""

import torch.nn.functional as F
from torch import Tensor, nn


class SqueezeExcite(nn.Module):
    """F * sigmoid(MLP(mean of F)).

    >>> import torch
    >>> SqueezeExcite(24, 16)(torch.rand(2, 24, 8, 6)).shape
    torch.Size([2, 24, 8, 6])
    """

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Conv2d(channels, hidden, 1), nn.Conv2d(hidden, channels, 1)

    def forward(self, map_BCHW: Tensor) -> Tensor:
        mean_BC11 = map_BCHW.mean(dim=(2, 3), keepdim=True)
        scaled_BCHW: Tensor = map_BCHW * self.fc2(F.relu(self.fc1(mean_BC11))).sigmoid()
        return scaled_BCHW
