"""A whole model in its reference form: the equations as printed, one question per sample (see `bcn.layers.reference`).

The fast form is measured against it, and the paper's operation counts are counts of it.

B images, C channels, H x W positions, N objects, D numbers in a question, Q questions about an image.
"""

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn

from bcn.layers.baselines.reference import ReferenceSetTransformerRelation, ReferenceTransformerRelation
from bcn.layers.baselines.set_transformer import SetTransformerRelation
from bcn.layers.baselines.transformer import TransformerRelation
from bcn.layers.broadcast import BroadcastConv, SkipConv
from bcn.layers.pointwise import ConcatConv1x1
from bcn.layers.reference import (
    ReferenceBroadcastConv,
    ReferenceMultiRelation,
    ReferencePairRelation,
    ReferenceRoundsRelation,
    ReferenceSkipConv,
    reference_conv,
)
from bcn.layers.relation import MultiRelation, PairRelation
from bcn.layers.rounds import RoundsRelation
from bcn.models.blocks import Broadcasting, Skipping
from bcn.models.object_model import ObjectModel
from bcn.models.relation_model import RelationModel


def reference_model(model: nn.Module) -> nn.Module:
    """A copy of the model, with its own copy of the weights, in the reference form wherever that differs.

    >>> from bcn.models.registry import create_model
    >>> reference_model(create_model("sort-of-clevr/multirn"))(torch.rand(2, 3, 75, 75), torch.rand(2, 20, 11)).shape
    torch.Size([2, 20, 10])
    """
    return _convert(copy.deepcopy(model))


def _convert(module: nn.Module) -> nn.Module:
    """The reference form of a module, on the module's own parameters."""
    for kind, form in _FORMS.items():
        if isinstance(module, kind):
            converted = form(module)
            converted.training = module.training
            return converted
    for name, child in module.named_children():
        setattr(module, name, _convert(child))
    return module


class ReferenceBroadcasting(nn.Module):
    """[F, BCN(F)] and a 1x1 convolution."""

    def __init__(self, fast: Broadcasting) -> None:
        super().__init__()
        self.broadcast, self.reduce, self.gamma = _convert(fast.broadcast), _convert(fast.reduce), fast.gamma

    def forward(self, map_BCHW: Tensor) -> Tensor:
        reduced_BCHW: Tensor = self.reduce(torch.cat([map_BCHW, self.broadcast(map_BCHW)], dim=1))
        if self.gamma is None:
            return torch.relu(reduced_BCHW)
        return map_BCHW + self.gamma.view(1, -1, 1, 1) * reduced_BCHW


class ReferenceSkipping(nn.Module):
    """[F, [F, C] * k] and a 1x1 convolution."""

    def __init__(self, fast: Skipping) -> None:
        super().__init__()
        self.skip, self.reduce = _convert(fast.skip), _convert(fast.reduce)

    def forward(self, map_BCHW: Tensor) -> Tensor:
        return torch.relu(self.reduce(torch.cat([map_BCHW, self.skip(map_BCHW)], dim=1)))


class ReferenceRelationModel(nn.Module):
    """One question per sample: an image with Q questions goes Q times through everything."""

    def __init__(self, fast: RelationModel) -> None:
        super().__init__()
        self.encoder, self.relation, self.f = _convert(fast.encoder), _convert(fast.relation), _convert(fast.f)

    def forward(self, image_BCHW: Tensor, question: Tensor) -> Tensor:
        if question.dim() == 3:
            repeated = image_BCHW.repeat_interleave(question.shape[1], dim=0)
            answers: Tensor = self(repeated, question.flatten(0, 1)).unflatten(0, question.shape[:2])
            return answers
        logits: Tensor = self.f(self.relation(self.encoder(image_BCHW), question))
        return logits


class ReferenceObjectModel(nn.Module):
    """One question about one scene per sample, whose padding is taken out and not masked.

    Without values, to count, all objects are there.
    """

    def __init__(self, fast: ObjectModel) -> None:
        super().__init__()
        self.relation, self.f = _convert(fast.relation), _convert(fast.f)

    def forward(self, objects_BNC: Tensor, mask_BN: Tensor, question: Tensor) -> Tensor:
        if question.dim() == 3:
            repeated = (part.repeat_interleave(question.shape[1], dim=0) for part in (objects_BNC, mask_BN))
            answers: Tensor = self(*repeated, question.flatten(0, 1)).unflatten(0, question.shape[:2])
            return answers
        summed = []
        for objects_NC, mask_N, question_D in zip(objects_BNC, mask_BN, question, strict=True):
            present_nC = objects_NC if objects_NC.is_meta else objects_NC[mask_N]
            summed.append(self.relation(present_nC.T[None, :, None], question_D[None]))
        logits: Tensor = self.f(torch.cat(summed))
        return logits


_FORMS: dict[type[nn.Module], Callable[..., nn.Module]] = {
    ConcatConv1x1: reference_conv,
    BroadcastConv: ReferenceBroadcastConv,  # before SkipConv, its base class
    SkipConv: ReferenceSkipConv,
    Broadcasting: ReferenceBroadcasting,
    Skipping: ReferenceSkipping,
    MultiRelation: ReferenceMultiRelation,
    PairRelation: ReferencePairRelation,
    RoundsRelation: ReferenceRoundsRelation,
    TransformerRelation: ReferenceTransformerRelation,
    SetTransformerRelation: ReferenceSetTransformerRelation,
    RelationModel: ReferenceRelationModel,
    ObjectModel: ReferenceObjectModel,
}
