"""Transformer and Set Transformer with real concatenations, every token through every block, attention as matrices.

Read beside `bcn.layers.baselines.transformer` and `set_transformer`, whose parameters they take; see
`bcn.layers.reference`.

R images with one question each, of n objects with C channels, H x W positions, D numbers in a question; T tokens of
width W that attend to S tokens, E numbers of a head.
"""

import torch
from torch import Tensor, nn

from bcn.layers.baselines.multihead import AttentionBlock
from bcn.layers.baselines.set_transformer import InducedSetAttention, SetTransformerRelation
from bcn.layers.baselines.transformer import TransformerRelation
from bcn.layers.coordinates import planes_like
from bcn.layers.reference import reference_conv


class ReferenceAttentionBlock(nn.Module):
    """x + attention(x, y) head by head, and then x + feed_forward(x)."""

    def __init__(self, block: AttentionBlock) -> None:
        super().__init__()
        self.heads = block.heads
        self.norm_x, self.norm_y, self.norm_hidden = block.norm_x, block.norm_y, block.norm_hidden
        self.query, self.value, self.out, self.key = block.query, block.value, block.out, block.key
        self.enter, self.leave = block.enter, block.leave

    def forward(self, x_RTW: Tensor, y_RSW: Tensor) -> Tensor:
        normed_y = self.norm_y(y_RSW)
        query, key, value = self.query(self.norm_x(x_RTW)), self.key(normed_y), self.value(normed_y)
        attended = []
        parts = (part.chunk(self.heads, dim=2) for part in (query, key, value))
        for query_RTE, key_RSE, value_RSE in zip(*parts, strict=True):
            score_RTS = torch.bmm(query_RTE, key_RSE.transpose(1, 2)) / query_RTE.shape[2] ** 0.5
            attended.append(torch.bmm(score_RTS.softmax(dim=2), value_RSE))
        x_RTW = x_RTW + self.out(torch.cat(attended, dim=2))
        left: Tensor = x_RTW + self.leave(torch.relu(self.enter(self.norm_hidden(x_RTW))))
        return left


def _objects(map_RCHW: Tensor, planes: str, origin: str) -> Tensor:
    """[o_i, C_i] as a map."""
    planes_RPHW = planes_like(map_RCHW, planes, origin).expand(map_RCHW.shape[0], -1, -1, -1)
    return torch.cat([map_RCHW, planes_RPHW], dim=1)


class ReferenceTransformerRelation(nn.Module):
    """All tokens through all blocks, of which the question's is kept."""

    def __init__(self, layer: TransformerRelation) -> None:
        super().__init__()
        self.planes, self.origin = layer.planes, layer.origin
        self.objects, self.question = reference_conv(layer.objects), layer.question
        self.blocks = nn.ModuleList(
            ReferenceAttentionBlock(block) for block in layer.blocks if isinstance(block, AttentionBlock)
        )
        self.norm = layer.norm

    def forward(self, map_RCHW: Tensor, question_RD: Tensor) -> Tensor:
        object_RnW = self.objects(_objects(map_RCHW, self.planes, self.origin)).flatten(2).transpose(1, 2)
        token_RTW = torch.cat([self.question(question_RD)[:, None], object_RnW], dim=1)
        for block in self.blocks:
            token_RTW = block(token_RTW, token_RTW)
        answer_RW: Tensor = self.norm(token_RTW)[:, 0]
        return answer_RW


class ReferenceInducedSetAttention(nn.Module):
    """ISAB(X) = MAB(X, MAB(I, X))."""

    def __init__(self, layer: InducedSetAttention) -> None:
        super().__init__()
        self.points = layer.points
        self.gather, self.spread = ReferenceAttentionBlock(layer.gather), ReferenceAttentionBlock(layer.spread)

    def forward(self, set_RnW: Tensor) -> Tensor:
        points_RpW = self.points[None].repeat(set_RnW.shape[0], 1, 1)
        spread: Tensor = self.spread(set_RnW, self.gather(points_RpW, set_RnW))
        return spread


class ReferenceSetTransformerRelation(nn.Module):
    """[o_i, C_i, q] through ISABs and PMA."""

    def __init__(self, layer: SetTransformerRelation) -> None:
        super().__init__()
        self.planes, self.origin = layer.planes, layer.origin
        self.seed, self.first = layer.seed, reference_conv(layer.first)
        self.blocks = nn.ModuleList(
            ReferenceInducedSetAttention(block) for block in layer.blocks if isinstance(block, InducedSetAttention)
        )
        self.pool, self.norm = ReferenceAttentionBlock(layer.pool), layer.norm

    def forward(self, map_RCHW: Tensor, question_RD: Tensor) -> Tensor:
        question_RDHW = question_RD[:, :, None, None].expand(-1, -1, *map_RCHW.shape[-2:])
        seen = torch.cat([_objects(map_RCHW, self.planes, self.origin), question_RDHW], dim=1)
        set_RnW = self.first(seen).flatten(2).transpose(1, 2)
        for block in self.blocks:
            set_RnW = block(set_RnW)
        seed_R1W = self.seed[None].repeat(set_RnW.shape[0], 1, 1)
        pooled_RW: Tensor = self.norm(self.pool(seed_R1W, set_RnW)[:, 0])
        return pooled_RW
