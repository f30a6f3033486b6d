"""Sort-of-CLEVR (section 5.3, table 3): a CNN, what relates its objects to each other and to the question, and f.

All models take images (B, 3, H, W) and questions (B, D) or (B, Q, D), and give logits (B, A) or (B, Q, A). What
depends on the image alone is computed once for all of its questions. Apart from the mlp rows, any image size will do.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from bcn.errors import BcnError
from bcn.layers.baselines.attention import StackedAttention
from bcn.layers.baselines.film import Film
from bcn.layers.broadcast import BroadcastConv
from bcn.layers.look import Look
from bcn.layers.relation import MultiRelation, PairRelation, check_questions
from bcn.models.blocks import CoordinateChannels, blocks, channels_last, mlp
from bcn.models.registry import register


class Flattened(nn.Module):
    """The rival without relations: all objects in one long vector, then the question."""

    def __init__(self, channels: int, questions: int, *, size: tuple[int, int], planes: str, origin: str) -> None:
        super().__init__()
        self.coordinates = CoordinateChannels(planes, origin)
        self.questions, self.size = questions, size
        self.out_channels = (channels + len(planes)) * size[0] * size[1] + questions

    def forward(self, map_BCHW: Tensor, question: Tensor) -> Tensor:
        if (size := tuple(map_BCHW.shape[-2:])) != self.size:
            raise BcnError(f"the image gives a map of {size}: an mlp accepts {self.size} alone, scale the image to fit")
        objects: Tensor = self.coordinates(map_BCHW).flatten(1)
        if question.dim() == 3:
            objects = objects[:, None].expand(-1, question.shape[1], -1)
        return torch.cat([objects, question], dim=-1)


class RelationModel(nn.Module):
    """f(relation(CNN(image), question)), the question as numbers."""

    def __init__(
        self,
        encoder: nn.Module,
        relation: MultiRelation | PairRelation | Flattened | StackedAttention | Film | Look,
        f: nn.Module,
    ) -> None:
        super().__init__()
        self.encoder, self.relation, self.f = encoder, relation, f

    @property
    def broadcast(self) -> BroadcastConv | None:
        return self.relation.broadcast if isinstance(self.relation, MultiRelation) else None

    def features(self, image_BCHW: Tensor) -> Tensor:
        """The map of objects, which the BCN sees where there is one."""
        features: Tensor = self.encoder(channels_last(image_BCHW))
        return features

    def forward(self, image_BCHW: Tensor, question: Tensor) -> Tensor:
        check_questions(question, image_BCHW.shape[0], self.relation.questions)
        logits: Tensor = self.f(self.relation(self.features(image_BCHW), question))
        return logits


def _encoder(*, last_stride: int = 2) -> nn.Sequential:
    """Four blocks of 24: 75x75 pixels become 5x5 objects, or 10x10 where the last stride is 1 (CNN_h)."""
    return blocks(3, (24, 24, 24, 24), last_stride=last_stride)


def _multirn(
    last_stride: int, sizes: Sequence[int], planes: str, origin: str, questions: int, answers: int
) -> RelationModel:
    """Equation 4; without sizes there is no BCN, and g sees [o_i, C, question]."""
    broadcast = BroadcastConv(24, sizes, planes=planes, origin=origin) if sizes else None
    relation = MultiRelation(24, questions, (256, 256), broadcast=broadcast, planes=planes, origin=origin)
    return RelationModel(_encoder(last_stride=last_stride), relation, mlp(256, 256, 256, answers))


def _rn(last_stride: int, planes: str, origin: str, questions: int, answers: int) -> RelationModel:
    """Equation 2 with everything else as in multiRN."""
    relation = PairRelation(24, questions, (256,) * 4, planes=planes, origin=origin)
    return RelationModel(_encoder(last_stride=last_stride), relation, mlp(256, 256, 256, answers))


def _mlp(planes: str, origin: str, questions: int, answers: int) -> RelationModel:
    flattened = Flattened(24, questions, size=(5, 5), planes=planes, origin=origin)
    return RelationModel(_encoder(), flattened, mlp(flattened.out_channels, 256, 256, answers))


@register("sort-of-clevr/rn-original")
def rn_original(questions: int = 11, answers: int = 10) -> RelationModel:
    """The network of Santoro et al. (2017): 32 to 256 channels, g of 4 x 2000, f of 2000, 1000, 500, 100.

    They tag an object with its place, here with x and y alone; the blocks are in the order of this paper.
    """
    encoder = blocks(3, (32, 64, 128, 256))
    relation = PairRelation(256, questions, (2000,) * 4, planes="xy")
    return RelationModel(encoder, relation, mlp(2000, 2000, 1000, 500, 100, answers))


@register("sort-of-clevr/rn")
def rn(planes: str = "xyr", origin: str = "centre", questions: int = 11, answers: int = 10) -> RelationModel:
    return _rn(2, planes, origin, questions, answers)


@register("sort-of-clevr/rn-h")
def rn_h(planes: str = "xyr", origin: str = "centre", questions: int = 11, answers: int = 10) -> RelationModel:
    return _rn(1, planes, origin, questions, answers)


@register("sort-of-clevr/mlp")
def mlp_row(questions: int = 11, answers: int = 10) -> RelationModel:
    return _mlp("", "centre", questions, answers)


@register("sort-of-clevr/cce-mlp")
def cce_mlp(planes: str = "xyr", origin: str = "centre", questions: int = 11, answers: int = 10) -> RelationModel:
    return _mlp(planes, origin, questions, answers)


@register("sort-of-clevr/multirn-no-bcn")
def multirn_no_bcn(
    planes: str = "xyr", origin: str = "centre", questions: int = 11, answers: int = 10
) -> RelationModel:
    return _multirn(2, (), planes, origin, questions, answers)


@register("sort-of-clevr/multirn")
def multirn(
    sizes: tuple[int, ...] = (128, 128, 256),
    planes: str = "xyr",
    origin: str = "centre",
    questions: int = 11,
    answers: int = 10,
) -> RelationModel:
    return _multirn(2, sizes, planes, origin, questions, answers)


@register("sort-of-clevr/multirn-h")
def multirn_h(
    sizes: tuple[int, ...] = (128, 128, 256),
    planes: str = "xyr",
    origin: str = "centre",
    questions: int = 11,
    answers: int = 10,
) -> RelationModel:
    return _multirn(1, sizes, planes, origin, questions, answers)
