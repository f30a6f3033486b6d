"""Global context (Cao et al., 2019): attention pools the map once for all positions, and the result is added to each.

The nearest relative of a BCN: it broadcasts a weighted mean of features, without coordinates, where a BCN broadcasts
maxima of convolutions over features and coordinates.

B images, C channels, H x W = n positions.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bcn.layers.rows import rows


class GlobalContext(nn.Module):
    """F + MLP(sum over positions of softmax(w F) F), with a LayerNorm in the MLP.

    >>> GlobalContext(24, 16)(torch.rand(2, 24, 8, 6)).shape
    torch.Size([2, 24, 8, 6])
    """

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.weigh = nn.Conv2d(channels, 1, 1, bias=False)
        self.fc1, self.norm, self.fc2 = nn.Linear(channels, hidden), nn.LayerNorm(hidden), nn.Linear(hidden, channels)

    def forward(self, map_BCHW: Tensor) -> Tensor:
        attention_B1n = self.weigh(map_BCHW).flatten(2).softmax(dim=2)
        context_BC = torch.bmm(attention_B1n, rows(map_BCHW))[:, 0]
        added_BC: Tensor = self.fc2(F.relu(self.norm(self.fc1(context_BC))))
        return map_BCHW + added_BC[:, :, None, None]
