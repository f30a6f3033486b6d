"""Sort-of-CLEVR: baselines of today beside the paper's, each with about the 345,074 parameters of multiRN.

They take what the models of `bcn.models.sort_of_clevr` take, and differ in what relates objects to each other and to
the question. RN is there, 364,914 parameters; the MLP without relations too.
"""

from itertools import pairwise

from torch import nn

from bcn.layers.baselines.coord_conv import CoordBlock
from bcn.layers.baselines.film import Film
from bcn.layers.baselines.set_transformer import SetTransformerRelation
from bcn.layers.baselines.transformer import TransformerRelation
from bcn.layers.relation import MultiRelation
from bcn.models.blocks import blocks, mlp
from bcn.models.registry import register
from bcn.models.relation_model import Flattened, RelationModel
from bcn.models.sort_of_clevr import IMAGE, encoder


@register("sort-of-clevr/transformer", image=IMAGE)
def transformer(
    planes: str = "xyr", origin: str = "centre", question_dim: int = 11, num_answers: int = 10
) -> RelationModel:
    """A Transformer encoder over 25 objects, the question as one more token."""
    relation = TransformerRelation(24, question_dim, planes=planes, origin=origin)
    return RelationModel(encoder(), relation, mlp(relation.out_channels, 256, 256, num_answers))


@register("sort-of-clevr/set-transformer", image=IMAGE)
def set_transformer(
    planes: str = "xyr", origin: str = "centre", question_dim: int = 11, num_answers: int = 10
) -> RelationModel:
    """A Set Transformer (ISAB) over 25 objects that each see the question."""
    relation = SetTransformerRelation(24, question_dim, planes=planes, origin=origin)
    return RelationModel(encoder(), relation, mlp(relation.out_channels, 256, 256, num_answers))


@register("sort-of-clevr/film", image=IMAGE)
def film(question_dim: int = 11, num_answers: int = 10) -> RelationModel:
    """Four convolutional blocks over the map, whose channels the question scales and shifts."""
    relation = Film(64, question_dim, out_channels=256)
    return RelationModel(blocks(3, (24, 24, 24, 64)), relation, mlp(256, 256, 256, num_answers))


@register("sort-of-clevr/deep-sets", image=IMAGE)
def deep_sets(
    planes: str = "xyr", origin: str = "centre", question_dim: int = 11, num_answers: int = 10
) -> RelationModel:
    """Deep Sets (Zaheer et al., 2017): multiRN without a BCN, as wide as one with it has parameters."""
    relation = MultiRelation(24, question_dim, (336, 336), broadcast=None, planes=planes, origin=origin)
    return RelationModel(encoder(), relation, mlp(336, 336, 256, num_answers))


@register("sort-of-clevr/coordconv-mlp", image=IMAGE)
def coordconv_mlp(
    planes: str = "xyr", origin: str = "centre", question_dim: int = 11, num_answers: int = 10
) -> RelationModel:
    """A CNN of CoordConvs, its whole map and the question through an MLP."""
    widths = (3, 24, 24, 24, 24)
    cnn = nn.Sequential(
        *(CoordBlock(channels, width, stride=2, planes=planes, origin=origin) for channels, width in pairwise(widths))
    )
    flattened = Flattened(24, question_dim, size=(5, 5), planes="", origin=origin)
    return RelationModel(cnn, flattened, mlp(flattened.out_channels, 344, 320, num_answers))
