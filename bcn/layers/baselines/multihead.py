"""Multi-head attention and a feed-forward layer: the block that Transformers and Set Transformers are stacked of.

Vaswani et al. (2017), normalised before each part instead of after it (Xiong et al., 2020), so that it trains without
warm-up. Lee et al. (2019) call it MAB(X, Y).

R sets: T tokens of width W that attend to S tokens; H heads of E = W / H numbers.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bcn.errors import BcnError


class AttentionBlock(nn.Module):
    """x + attention(x, y), and then x + feed_forward(x).

    >>> AttentionBlock(96, 384)(torch.rand(2, 1, 96), torch.rand(2, 25, 96)).shape
    torch.Size([2, 1, 96])

    Args:
        width: of tokens, divisible by `heads`.
        hidden: channels of the feed-forward layer.
    """

    def __init__(self, width: int, hidden: int, *, heads: int = 4) -> None:
        super().__init__()
        if width % heads:
            raise BcnError(f"width={width}, heads={heads}: accepted is a width that the heads share evenly")
        self.heads = heads
        self.norm_x, self.norm_y, self.norm_hidden = (nn.LayerNorm(width) for _ in range(3))
        self.query, self.value, self.out = (nn.Linear(width, width) for _ in range(3))
        self.key = nn.Linear(width, width, bias=False)  # softmax would not see a bias
        self.enter, self.leave = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x_RTW: Tensor, y_RSW: Tensor, mask_RS: Tensor | None = None) -> Tensor:
        """
        Args:
            mask_RS: bool, the tokens of y that are there; by default all.
        """
        y_RSW = self.norm_y(y_RSW)
        query, key, value = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (R, H, T or S, E)
            for part in (self.query(self.norm_x(x_RTW)), self.key(y_RSW), self.value(y_RSW))
        )
        mask = None if mask_RS is None else mask_RS[:, None, None]
        attended_RHTE = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        x_RTW = x_RTW + self.out(attended_RHTE.transpose(1, 2).flatten(2))
        hidden = torch.relu(self.enter(self.norm_hidden(x_RTW)))
        left_RTW: Tensor = x_RTW + self.leave(hidden)
        return left_RTW
