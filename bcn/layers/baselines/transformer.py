"""A Transformer encoder (Vaswani et al., 2017) over objects and the question, which is one more token.

Objects are related pair by pair, O(n^2), as in a Relation Network; what relates them is attention instead of an MLP.

B images of H x W = n objects with C channels and P coordinate planes, Q questions of D numbers about each, R = B Q;
tokens of width W.
"""

import torch
from torch import Tensor, nn

from bcn.layers.baselines.multihead import AttentionBlock
from bcn.layers.coordinates import check_planes, planes_like
from bcn.layers.pointwise import ConcatConv1x1
from bcn.layers.relation import check_questions
from bcn.layers.rows import check_map, rows


class TransformerRelation(nn.Module):
    """The question's token after it and all objects have attended to each other.

    Objects become tokens once for all questions, and the last block is computed for the question's token alone.

    >>> TransformerRelation(24, 11)(torch.rand(2, 24, 5, 5), torch.rand(2, 20, 11)).shape
    torch.Size([2, 20, 96])

    Args:
        channels: of the map of objects.
        question_dim: numbers in a question.
        width: of a token.
        hidden: channels of the feed-forward layers.
        planes, origin: the coordinate planes that an object sees, see `coordinate_planes`.
    """

    def __init__(
        self,
        channels: int,
        question_dim: int,
        width: int = 96,
        *,
        hidden: int = 384,
        heads: int = 4,
        blocks: int = 2,
        planes: str = "xyr",
        origin: str = "centre",
    ) -> None:
        super().__init__()
        check_planes(planes, origin)
        self.planes, self.origin, self.question_dim, self.out_channels = planes, origin, question_dim, width
        self.objects = ConcatConv1x1((channels, len(planes)), width)
        self.question = nn.Linear(question_dim, width)
        self.blocks = nn.ModuleList(AttentionBlock(width, hidden, heads=heads) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)

    def forward(self, map_BCHW: Tensor, question: Tensor, mask_Bn: Tensor | None = None) -> Tensor:
        """The question's token for questions (B, D) or (B, Q, D): (B, W) or (B, Q, W).

        Args:
            mask_Bn: bool, the objects that are there; by default all.
        """
        check_map(map_BCHW, self.objects.channels[0])
        check_questions(question, map_BCHW.shape[0], self.question_dim)
        question_BQ1D = (question if question.dim() == 3 else question[:, None])[:, :, None]
        object_B1nW = self.objects.forward_rows(rows(map_BCHW), rows(planes_like(map_BCHW, self.planes, self.origin)))[
            :, None
        ]
        questions = question_BQ1D.shape[1]
        token_RTW = torch.cat([self.question(question_BQ1D), object_B1nW.expand(-1, questions, -1, -1)], dim=2).flatten(
            0, 1
        )
        mask_RT = None
        if mask_Bn is not None:
            mask_BT = torch.cat([torch.ones_like(mask_Bn[:, :1]), mask_Bn], dim=1)
            mask_RT = mask_BT.repeat_interleave(questions, dim=0)
        for block in self.blocks[:-1]:
            token_RTW = block(token_RTW, token_RTW, mask_RT)
        answer_RW: Tensor = self.norm(self.blocks[-1](token_RTW[:, :1], token_RTW, mask_RT)[:, 0])
        return answer_RW.view(*question.shape[:-1], self.out_channels)

    def extra_repr(self) -> str:
        return f"planes={self.planes!r}, origin={self.origin!r}"
