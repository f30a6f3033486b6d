"""Equations 1 to 4 exactly as printed: real concatenations, real expansions, all pairs as a map.

Read this file with the paper in hand. It is the documentation of what the layers compute, the oracle that tests compare
the fast layers with, and the baseline of the benchmarks. Each class takes the parameters of its fast counterpart, so
`state_dict`s go both ways.

B images, C channels, H x W = n objects, D numbers in a question, K broadcast channels, P coordinate planes.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bcn.layers.broadcast import BroadcastConv, SkipConv
from bcn.layers.coordinates import planes_like
from bcn.layers.pointwise import ConcatConv1x1
from bcn.layers.relation import MultiRelation, PairRelation
from bcn.layers.rounds import RoundsRelation


def reference_conv(layer: ConcatConv1x1) -> nn.Conv2d:
    """An ordinary 1x1 convolution, over a concatenation that somebody has built."""
    conv = nn.Conv2d(layer.in_channels, layer.out_channels, 1, device="meta")
    conv.weight, conv.bias = layer.weight, layer.bias
    return conv


def _convs(layers: nn.ModuleList) -> nn.ModuleList:
    return nn.ModuleList(reference_conv(layer) for layer in layers if isinstance(layer, ConcatConv1x1))


def _relu_convs(map_BCHW: Tensor, convs: nn.ModuleList) -> Tensor:
    for conv in convs:
        map_BCHW = torch.relu(conv(map_BCHW))
    return map_BCHW


def _expand(vector_BC: Tensor, like_BCHW: Tensor) -> Tensor:
    """E of equation 1: the same vector at every position."""
    return vector_BC[:, :, None, None].expand(-1, -1, *like_BCHW.shape[-2:])


class _Reference(nn.Module):
    def __init__(self, planes: str, origin: str) -> None:
        super().__init__()
        self.planes, self.origin = planes, origin

    def coordinates(self, map_BCHW: Tensor) -> Tensor:
        """C, the coordinate planes, for every image: (B, P, H, W)."""
        return planes_like(map_BCHW, self.planes, self.origin).expand(map_BCHW.shape[0], -1, -1, -1)


class ReferenceSkipConv(_Reference):
    """[F, C] * k."""

    def __init__(self, layer: SkipConv) -> None:
        super().__init__(layer.planes, layer.origin)
        self.k = _convs(layer.k)
        self.slope = 0.0

    def forward(self, map_BCHW: Tensor) -> Tensor:
        hidden = _relu_convs(torch.cat([map_BCHW, self.coordinates(map_BCHW)], dim=1), self.k[:-1])
        return F.leaky_relu(self.k[-1](hidden), self.slope)


class ReferenceBroadcastConv(ReferenceSkipConv):
    """Equation 1: BCN(F) = [E(max([F, C] * k), h, w), C]."""

    def __init__(self, layer: BroadcastConv) -> None:
        super().__init__(layer)
        self.pool = layer.pool
        self.slope = layer.negative_slope if layer.final_relu else 1.0

    def forward(self, map_BCHW: Tensor) -> Tensor:
        hidden_BKHW = super().forward(map_BCHW)
        pool = F.adaptive_max_pool2d if self.pool == "max" else F.adaptive_avg_pool2d
        vector_BK: Tensor = pool(hidden_BKHW, 1).flatten(1)
        return torch.cat([_expand(vector_BK, map_BCHW), self.coordinates(map_BCHW)], dim=1)


class ReferencePairRelation(_Reference):
    """Equation 2 without f: the sum over i, j of g([o_i, o_j, q]), the pairs as an n x n map.

    An object o_i is a position of the map with its coordinates.
    """

    def __init__(self, layer: PairRelation) -> None:
        super().__init__(layer.planes, layer.origin)
        self.g = _convs(layer.g)

    def forward(self, map_BCHW: Tensor, question_BD: Tensor) -> Tensor:
        objects_BCn = torch.cat([map_BCHW, self.coordinates(map_BCHW)], dim=1).flatten(2)
        n = objects_BCn.shape[2]
        i_BCnn = objects_BCn[:, :, :, None].expand(-1, -1, -1, n)
        j_BCnn = objects_BCn[:, :, None, :].expand(-1, -1, n, -1)
        pairs = torch.cat([i_BCnn, j_BCnn, _expand(question_BD, i_BCnn)], dim=1)
        return _relu_convs(pairs, self.g).sum(dim=(2, 3))


class ReferenceMultiRelation(_Reference):
    """Equations 3 and 4 without f: the sum over i of g([o_i, BCN(O), q]); without a BCN, of g([o_i, C, q])."""

    def __init__(self, layer: MultiRelation) -> None:
        super().__init__(layer.planes, layer.origin)
        self.g = _convs(layer.g)
        self.broadcast = ReferenceBroadcastConv(layer.broadcast) if layer.broadcast is not None else None

    def forward(self, map_BCHW: Tensor, question_BD: Tensor) -> Tensor:
        broadcast = self.broadcast(map_BCHW) if self.broadcast else self.coordinates(map_BCHW)
        objects = torch.cat([map_BCHW, broadcast, _expand(question_BD, map_BCHW)], dim=1)
        return _relu_convs(objects, self.g).sum(dim=(2, 3))


class ReferenceRoundsRelation(_Reference):
    """Broadcast after asking, as `bcn.layers.rounds` prints it; not of the paper."""

    def __init__(self, layer: RoundsRelation) -> None:
        super().__init__(layer.planes, layer.origin)
        self.first, self.says, self.hears = reference_conv(layer.first), _convs(layer.says), _convs(layer.hears)
        self.g = reference_conv(layer.g)

    def forward(self, map_BCHW: Tensor, question_BD: Tensor) -> Tensor:
        seen = torch.cat([map_BCHW, self.coordinates(map_BCHW), _expand(question_BD, map_BCHW)], dim=1)
        hidden = torch.relu(self.first(seen))
        for says, hears in zip(self.says, self.hears, strict=True):
            vector_BW = F.adaptive_max_pool2d(says(hidden), 1).flatten(1)
            hidden = torch.relu(hears(torch.cat([hidden, _expand(vector_BW, hidden), seen], dim=1)))
        return torch.relu(self.g(hidden)).sum(dim=(2, 3))
