"""Self-attention as a block: every position asks, and cells of the map answer.

Keys and values are means over at most GRID x GRID cells, as in pyramid vision transformers (Wang et al., 2021): all
positions of a 32x32 map would be 16 times as many.

B images, C channels, H x W = n positions, m cells, D numbers of a head.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bcn.layers.coordinates import planes_like
from bcn.layers.rows import as_map, rows

HEADS, GRID = 4, 8


class SelfAttention(nn.Module):
    """F + W (softmax(Q K / sqrt(D)) V), over features and the coordinates that a BCN sees.

    >>> SelfAttention(24, 16)(torch.rand(2, 24, 8, 6)).shape
    torch.Size([2, 24, 8, 6])

    Args:
        hidden: numbers of all heads together, a multiple of 4.
    """

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.query, self.value = nn.Linear(channels + 3, hidden), nn.Linear(channels + 3, hidden)
        self.key = nn.Linear(channels + 3, hidden, bias=False)  # a bias would change all keys alike
        self.out = nn.Linear(hidden, channels)

    def forward(self, map_BCHW: Tensor) -> Tensor:
        planes_BPHW = planes_like(map_BCHW, "xyr", "centre").expand(map_BCHW.shape[0], -1, -1, -1)
        seen_BSHW = torch.cat([map_BCHW, planes_BPHW], dim=1)
        height, width = map_BCHW.shape[2:]
        cells_BmS = rows(F.adaptive_avg_pool2d(seen_BSHW, (min(height, GRID), min(width, GRID))))
        query_BHnD, key_BHmD, value_BHmD = (
            part.unflatten(2, (HEADS, -1)).transpose(1, 2)
            for part in (self.query(rows(seen_BSHW)), self.key(cells_BmS), self.value(cells_BmS))
        )
        heads_BHnD = F.scaled_dot_product_attention(query_BHnD, key_BHmD, value_BHmD)
        added_BnC: Tensor = self.out(heads_BHnD.transpose(1, 2).flatten(2))
        return map_BCHW + as_map(added_BnC, map_BCHW)
