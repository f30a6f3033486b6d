"""A Set Transformer (Lee et al., 2019) over objects that each see the question: attention in O(n).

All objects attend to a few learned points and the points to all objects, so that no pair of objects is compared. That
is what a BCN does with a maximum, and rounds of broadcasting with one for each question.

B images of H x W = n objects with C channels and P coordinate planes, Q questions of D numbers about each, R = B Q; a
set of objects of width W.
"""

import torch
from torch import Tensor, nn

from bcn.layers.baselines.multihead import AttentionBlock
from bcn.layers.coordinates import check_planes, planes_like
from bcn.layers.pointwise import ConcatConv1x1
from bcn.layers.relation import check_questions
from bcn.layers.rounds import add_parts
from bcn.layers.rows import check_map, rows


class InducedSetAttention(nn.Module):
    """ISAB(X) = MAB(X, MAB(I, X)) with learned points I.

    >>> InducedSetAttention(80, 128)(torch.rand(2, 25, 80)).shape
    torch.Size([2, 25, 80])
    """

    def __init__(self, width: int, hidden: int, *, points: int = 8, heads: int = 4) -> None:
        super().__init__()
        self.points = nn.Parameter(torch.randn(points, width))
        self.gather = AttentionBlock(width, hidden, heads=heads)
        self.spread = AttentionBlock(width, hidden, heads=heads)

    def forward(self, set_RnW: Tensor, mask_Rn: Tensor | None = None) -> Tensor:
        points_RpW = self.gather(self.points.expand(set_RnW.shape[0], -1, -1), set_RnW, mask_Rn)
        spread: Tensor = self.spread(set_RnW, points_RpW)
        return spread


class SetTransformerRelation(nn.Module):
    """Objects [o_i, C_i, q] through ISABs, pooled by the attention of a learned seed (PMA).

    >>> SetTransformerRelation(24, 11)(torch.rand(2, 24, 5, 5), torch.rand(2, 20, 11)).shape
    torch.Size([2, 20, 80])

    Args:
        channels: of the map of objects.
        question_dim: numbers in a question.
        width: of what an object holds.
        hidden: channels of the feed-forward layers.
        points: learned points of an ISAB.
        planes, origin: the coordinate planes that an object sees, see `coordinate_planes`.
    """

    def __init__(
        self,
        channels: int,
        question_dim: int,
        width: int = 80,
        *,
        hidden: int = 128,
        points: int = 8,
        heads: int = 4,
        blocks: int = 2,
        planes: str = "xyr",
        origin: str = "centre",
    ) -> None:
        super().__init__()
        check_planes(planes, origin)
        self.planes, self.origin, self.question_dim, self.out_channels = planes, origin, question_dim, width
        self.first = ConcatConv1x1((channels, len(planes), question_dim), width)
        self.blocks = nn.ModuleList(
            InducedSetAttention(width, hidden, points=points, heads=heads) for _ in range(blocks)
        )
        self.seed = nn.Parameter(torch.randn(1, width))
        self.pool = AttentionBlock(width, hidden, heads=heads)
        self.norm = nn.LayerNorm(width)

    def forward(self, map_BCHW: Tensor, question: Tensor, mask_Bn: Tensor | None = None) -> Tensor:
        """The pooled set for questions (B, D) or (B, Q, D): (B, W) or (B, Q, W).

        Args:
            mask_Bn: bool, the objects that are there; by default all.
        """
        check_map(map_BCHW, self.first.channels[0])
        check_questions(question, map_BCHW.shape[0], self.question_dim)
        question_BQ1D = (question if question.dim() == 3 else question[:, None])[:, :, None]
        planes_11nP = rows(planes_like(map_BCHW, self.planes, self.origin))[:, None]
        set_RnW = add_parts(self.first, rows(map_BCHW)[:, None], planes_11nP, question_BQ1D).flatten(0, 1)
        mask_Rn = None if mask_Bn is None else mask_Bn.repeat_interleave(question_BQ1D.shape[1], dim=0)
        for block in self.blocks:
            set_RnW = block(set_RnW, mask_Rn)
        seed_R1W = self.seed.expand(set_RnW.shape[0], 1, -1)
        pooled_RW: Tensor = self.norm(self.pool(seed_R1W, set_RnW, mask_Rn)[:, 0])
        return pooled_RW.view(*question.shape[:-1], self.out_channels)

    def extra_repr(self) -> str:
        return f"planes={self.planes!r}, origin={self.origin!r}"
