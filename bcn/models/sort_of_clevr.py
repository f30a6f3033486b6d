"""Sort-of-CLEVR (section 5.3, table 3): a CNN, what relates its objects to each other and to the question, and f.

All models take images (B, 3, H, W) and questions (B, D) or (B, Q, D), and give logits (B, A) or (B, Q, A). What
depends on the image alone is computed once for all of its questions. Apart from the mlp rows, any image size will do.
"""

from collections.abc import Sequence

from torch import nn

from bcn.layers.broadcast import BroadcastConv
from bcn.layers.relation import MultiRelation, PairRelation
from bcn.layers.rounds import RoundsRelation
from bcn.models.blocks import blocks, mlp
from bcn.models.registry import register
from bcn.models.relation_model import Flattened, RelationModel

IMAGE = (3, 75, 75)


CHANNELS = (24, 24, 24, 24)
"""of the blocks of the CNN"""


def encoder(channels: Sequence[int] = CHANNELS, *, last_stride: int = 2) -> nn.Sequential:
    """Four blocks: 75x75 pixels become 5x5 objects, or 10x10 where the last stride is 1 (CNN_h)."""
    return blocks(3, channels, last_stride=last_stride)


def _multirn(
    last_stride: int,
    sizes: Sequence[int],
    planes: str,
    origin: str,
    question_dim: int,
    num_answers: int,
    final_relu: bool = False,
    negative_slope: float = 0.0,
) -> RelationModel:
    """Equation 4; without sizes there is no BCN, and g sees [o_i, C, question]."""
    broadcast = None
    if sizes:
        broadcast = BroadcastConv(
            24, sizes, planes=planes, origin=origin, final_relu=final_relu, negative_slope=negative_slope
        )
    relation = MultiRelation(24, question_dim, (256, 256), broadcast=broadcast, planes=planes, origin=origin)
    return RelationModel(encoder(last_stride=last_stride), relation, mlp(256, 256, 256, num_answers))


def _rn(last_stride: int, planes: str, origin: str, question_dim: int, num_answers: int) -> RelationModel:
    """Equation 2 with everything else as in multiRN."""
    relation = PairRelation(24, question_dim, (256,) * 4, planes=planes, origin=origin)
    return RelationModel(encoder(last_stride=last_stride), relation, mlp(256, 256, 256, num_answers))


def _mlp(planes: str, origin: str, question_dim: int, num_answers: int) -> RelationModel:
    flattened = Flattened(24, question_dim, size=(5, 5), planes=planes, origin=origin)
    return RelationModel(encoder(), flattened, mlp(flattened.out_channels, 256, 256, num_answers))


@register("sort-of-clevr/rn-original", image=IMAGE)
def rn_original(question_dim: int = 11, num_answers: int = 10) -> RelationModel:
    """The network of Santoro et al. (2017): 32 to 256 channels, g of 4 x 2000, f of 2000, 1000, 500, 100.

    They tag an object with its place, here with x and y alone; the blocks are in the order of this paper.
    """
    encoder = blocks(3, (32, 64, 128, 256))
    relation = PairRelation(256, question_dim, (2000,) * 4, planes="xy")
    return RelationModel(encoder, relation, mlp(2000, 2000, 1000, 500, 100, num_answers))


@register("sort-of-clevr/rn", image=IMAGE)
def rn(planes: str = "xyr", origin: str = "centre", question_dim: int = 11, num_answers: int = 10) -> RelationModel:
    return _rn(2, planes, origin, question_dim, num_answers)


@register("sort-of-clevr/rn-h", image=IMAGE)
def rn_h(planes: str = "xyr", origin: str = "centre", question_dim: int = 11, num_answers: int = 10) -> RelationModel:
    return _rn(1, planes, origin, question_dim, num_answers)


@register("sort-of-clevr/mlp", image=IMAGE)
def mlp_row(question_dim: int = 11, num_answers: int = 10) -> RelationModel:
    return _mlp("", "centre", question_dim, num_answers)


@register("sort-of-clevr/cce-mlp", image=IMAGE)
def cce_mlp(
    planes: str = "xyr", origin: str = "centre", question_dim: int = 11, num_answers: int = 10
) -> RelationModel:
    return _mlp(planes, origin, question_dim, num_answers)


@register("sort-of-clevr/multirn-no-bcn", image=IMAGE)
def multirn_no_bcn(
    planes: str = "xyr", origin: str = "centre", question_dim: int = 11, num_answers: int = 10
) -> RelationModel:
    return _multirn(2, (), planes, origin, question_dim, num_answers)


@register("sort-of-clevr/multirn", image=IMAGE)
def multirn(
    sizes: tuple[int, ...] = (128, 128, 256),
    planes: str = "xyr",
    origin: str = "centre",
    question_dim: int = 11,
    num_answers: int = 10,
    final_relu: bool = False,
    negative_slope: float = 0.0,
) -> RelationModel:
    return _multirn(2, sizes, planes, origin, question_dim, num_answers, final_relu, negative_slope)


@register("sort-of-clevr/multirn-h", image=IMAGE)
def multirn_h(
    sizes: tuple[int, ...] = (128, 128, 256),
    planes: str = "xyr",
    origin: str = "centre",
    question_dim: int = 11,
    num_answers: int = 10,
    final_relu: bool = False,
    negative_slope: float = 0.0,
) -> RelationModel:
    return _multirn(1, sizes, planes, origin, question_dim, num_answers, final_relu, negative_slope)


def _rounds(
    last_stride: int,
    channels: Sequence[int],
    width: int,
    rounds: int,
    planes: str,
    origin: str,
    question_dim: int,
    num_answers: int,
) -> RelationModel:
    relation = RoundsRelation(channels[-1], question_dim, width, rounds=rounds, planes=planes, origin=origin)
    return RelationModel(encoder(channels, last_stride=last_stride), relation, mlp(width, 256, 256, num_answers))


@register("sort-of-clevr/multirn-rounds", image=IMAGE)
def multirn_rounds(
    channels: tuple[int, ...] = CHANNELS,
    width: int = 96,
    rounds: int = 2,
    planes: str = "xyr",
    origin: str = "centre",
    question_dim: int = 11,
    num_answers: int = 10,
) -> RelationModel:
    """Ours: broadcast after asking, 25 objects."""
    return _rounds(2, channels, width, rounds, planes, origin, question_dim, num_answers)


@register("sort-of-clevr/multirn-rounds-h", image=IMAGE)
def multirn_rounds_h(
    channels: tuple[int, ...] = CHANNELS,
    width: int = 96,
    rounds: int = 2,
    planes: str = "xyr",
    origin: str = "centre",
    question_dim: int = 11,
    num_answers: int = 10,
) -> RelationModel:
    """Ours: broadcast after asking, 100 objects."""
    return _rounds(1, channels, width, rounds, planes, origin, question_dim, num_answers)
