"""The same models written as the equations read: real concatenations, real expansions, pairs as tensors, one question
per sample. It is what the fast form is measured against, and what the paper's operation counts are counts of.

Weights go both ways: `literal(model).load_state_dict(model.state_dict())` and back.

B images, C channels, H x W = n positions, D numbers in a question, Q questions about an image.
"""

import copy
from collections.abc import Callable, Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bcn.layers.broadcast import BroadcastConv, SkipConv
from bcn.layers.coordinates import coordinate_planes
from bcn.layers.pointwise import ConcatConv1x1
from bcn.layers.relation import MultiRelation, PairRelation
from bcn.models.blocks import Broadcasting, Skipping
from bcn.models.sort_of_clevr import RelationModel


def literal(model: nn.Module) -> nn.Module:
    """A twin of the model with its own copy of the weights, in the literal form wherever that differs.

    >>> from bcn.models.registry import create_model
    >>> literal(create_model("sort-of-clevr/multirn"))(torch.rand(2, 3, 75, 75), torch.rand(2, 20, 11)).shape
    torch.Size([2, 20, 10])
    """
    return _twin(copy.deepcopy(model))


def _twin(module: nn.Module) -> nn.Module:
    """The literal form of a module, made of the module's own parameters."""
    for kind, form in _FORMS.items():
        if isinstance(module, kind):
            twin = form(module)
            twin.training = module.training
            return twin
    for name, child in module.named_children():
        setattr(module, name, _twin(child))
    return module


def _expanded(vector_BC: Tensor, like_BCHW: Tensor) -> Tensor:
    return vector_BC[:, :, None, None].expand(-1, -1, *like_BCHW.shape[-2:])


def _planes(map_BCHW: Tensor, planes: str, origin: str) -> Tensor:
    images, _, height, width = map_BCHW.shape
    made = coordinate_planes(height, width, planes, origin, dtype=map_BCHW.dtype, device=map_BCHW.device)
    return made.expand(images, -1, -1, -1)


def _convolution(layer: ConcatConv1x1) -> nn.Module:
    plain = nn.Conv2d(layer.in_channels, layer.out_channels, 1, device="meta")
    plain.weight, plain.bias = layer.weight, layer.bias
    return plain


def _layers(fast: Iterable[nn.Module]) -> nn.ModuleList:
    return nn.ModuleList(map(_twin, fast))


class LiteralSkip(nn.Module):
    """[F, C] * k."""

    def __init__(self, fast: SkipConv) -> None:
        super().__init__()
        self.planes, self.origin = fast.planes, fast.origin
        self.k = _layers(fast.k)

    def forward(self, map_BCHW: Tensor) -> Tensor:
        hidden = torch.cat([map_BCHW, _planes(map_BCHW, self.planes, self.origin)], dim=1)
        for layer in self.k:
            hidden = torch.relu(layer(hidden))
        return hidden


class LiteralBroadcast(LiteralSkip):
    """Equation 1: [E(max([F, C] * k), h, w), C]."""

    def __init__(self, fast: BroadcastConv) -> None:
        super().__init__(fast)
        self.pool = fast.pool

    def forward(self, map_BCHW: Tensor) -> Tensor:
        hidden = super().forward(map_BCHW)
        pooled_BK11 = F.adaptive_max_pool2d(hidden, 1) if self.pool == "max" else F.adaptive_avg_pool2d(hidden, 1)
        everywhere = pooled_BK11.expand(-1, -1, *map_BCHW.shape[-2:])
        return torch.cat([everywhere, _planes(map_BCHW, self.planes, self.origin)], dim=1)


class LiteralBroadcasting(nn.Module):
    """[F, BCN(F)] and a 1x1 convolution."""

    def __init__(self, fast: Broadcasting) -> None:
        super().__init__()
        self.broadcast, self.reduce = _twin(fast.broadcast), _twin(fast.reduce)

    def forward(self, map_BCHW: Tensor) -> Tensor:
        return torch.relu(self.reduce(torch.cat([map_BCHW, self.broadcast(map_BCHW)], dim=1)))


class LiteralSkipping(nn.Module):
    """[F, [F, C] * k] and a 1x1 convolution."""

    def __init__(self, fast: Skipping) -> None:
        super().__init__()
        self.skip, self.reduce = _twin(fast.skip), _twin(fast.reduce)

    def forward(self, map_BCHW: Tensor) -> Tensor:
        return torch.relu(self.reduce(torch.cat([map_BCHW, self.skip(map_BCHW)], dim=1)))


class LiteralMultiRelation(nn.Module):
    """Equation 4 without f: the sum over positions of g([F, BCN(F), question])."""

    def __init__(self, fast: MultiRelation) -> None:
        super().__init__()
        self.planes, self.origin = fast.planes, fast.origin
        self.g = _layers(fast.g)
        self.broadcast = _twin(fast.broadcast) if fast.broadcast is not None else None

    def forward(self, map_BCHW: Tensor, question_BD: Tensor) -> Tensor:
        seen = self.broadcast(map_BCHW) if self.broadcast else _planes(map_BCHW, self.planes, self.origin)
        hidden = torch.cat([map_BCHW, seen, _expanded(question_BD, map_BCHW)], dim=1)
        for layer in self.g:
            hidden = torch.relu(layer(hidden))
        return hidden.sum(dim=(2, 3))


class LiteralPairRelation(nn.Module):
    """Equation 2 without f: the sum over pairs of g([o_i, o_j, question]), pairs as an n x n map."""

    def __init__(self, fast: PairRelation) -> None:
        super().__init__()
        self.planes, self.origin = fast.planes, fast.origin
        self.g = _layers(fast.g)

    def forward(self, map_BCHW: Tensor, question_BD: Tensor) -> Tensor:
        objects_BCn = torch.cat([map_BCHW, _planes(map_BCHW, self.planes, self.origin)], dim=1).flatten(2)
        objects = objects_BCn.shape[2]
        i_BCnn = objects_BCn[:, :, :, None].expand(-1, -1, -1, objects)
        j_BCnn = objects_BCn[:, :, None, :].expand(-1, -1, objects, -1)
        hidden = torch.cat([i_BCnn, j_BCnn, _expanded(question_BD, i_BCnn)], dim=1)
        for layer in self.g:
            hidden = torch.relu(layer(hidden))
        return hidden.sum(dim=(2, 3))


class LiteralRelationModel(nn.Module):
    """One question per sample: an image with Q questions goes Q times through everything."""

    def __init__(self, fast: RelationModel) -> None:
        super().__init__()
        self.encoder, self.relation, self.f = _twin(fast.encoder), _twin(fast.relation), _twin(fast.f)

    def forward(self, image_BCHW: Tensor, question: Tensor) -> Tensor:
        if question.dim() == 3:
            each = image_BCHW.repeat_interleave(question.shape[1], dim=0)
            answers: Tensor = self(each, question.flatten(0, 1)).unflatten(0, question.shape[:2])
            return answers
        logits: Tensor = self.f(self.relation(self.encoder(image_BCHW), question))
        return logits


_FORMS: dict[type[nn.Module], Callable[..., nn.Module]] = {
    ConcatConv1x1: _convolution,
    BroadcastConv: LiteralBroadcast,  # before SkipConv, which it is a kind of
    SkipConv: LiteralSkip,
    Broadcasting: LiteralBroadcasting,
    Skipping: LiteralSkipping,
    MultiRelation: LiteralMultiRelation,
    PairRelation: LiteralPairRelation,
    RelationModel: LiteralRelationModel,
}
