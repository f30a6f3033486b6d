"""Sort-of-CLEVR from states: the relations of the other rows over the objects of a scene instead of a CNN's map.

All take objects (B, N, C), a mask (B, N) of those that are there and questions (B, D) or (B, Q, D), and give logits
(B, A) or (B, Q, A). An object holds its place, shape and colour. Each has about the parameters of multiRN.
"""

from torch import nn

from bcn.layers.baselines.film import FilmObjects
from bcn.layers.baselines.set_transformer import SetTransformerRelation
from bcn.layers.baselines.transformer import TransformerRelation
from bcn.layers.broadcast import BroadcastConv
from bcn.layers.relation import MultiRelation, PairRelation
from bcn.layers.rounds import RoundsRelation
from bcn.models.blocks import mlp
from bcn.models.object_model import FlattenedObjects, ObjectModel
from bcn.models.registry import register
from bcn.models.sort_of_clevr import IMAGE

OBJECT_DIM = 10
"""x, y, two shapes, six colours"""


def _model(object_dim: int, relation: nn.Module, *sizes: int) -> ObjectModel:
    out_channels = relation.out_channels
    assert isinstance(out_channels, int)
    return ObjectModel(object_dim, relation, mlp(out_channels, *sizes))


@register("sort-of-clevr/rn-states", image=IMAGE)
def rn_states(object_dim: int = OBJECT_DIM, question_dim: int = 11, num_answers: int = 10) -> ObjectModel:
    """Equation 2 over the objects of a scene."""
    return _model(object_dim, PairRelation(object_dim, question_dim, planes=""), 256, 256, num_answers)


@register("sort-of-clevr/mlp-states", image=IMAGE)
def mlp_states(object_dim: int = OBJECT_DIM, question_dim: int = 11, num_answers: int = 10) -> ObjectModel:
    """Twelve objects and the question in one vector, no relations."""
    return _model(object_dim, FlattenedObjects(object_dim, question_dim), 384, 384, 320, num_answers)


@register("sort-of-clevr/deep-sets-states", image=IMAGE)
def deep_sets_states(object_dim: int = OBJECT_DIM, question_dim: int = 11, num_answers: int = 10) -> ObjectModel:
    """Deep Sets: multiRN without a BCN."""
    relation = MultiRelation(object_dim, question_dim, (344, 344), broadcast=None, planes="")
    return _model(object_dim, relation, 344, 256, num_answers)


@register("sort-of-clevr/multirn-states", image=IMAGE)
def multirn_states(
    sizes: tuple[int, ...] = (128, 128, 256),
    object_dim: int = OBJECT_DIM,
    question_dim: int = 11,
    num_answers: int = 10,
    final_relu: bool = False,
) -> ObjectModel:
    """Equation 4 over the objects of a scene: k over each object, the maximum over those that are there."""
    broadcast = BroadcastConv(object_dim, sizes, planes="", final_relu=final_relu)
    relation = MultiRelation(object_dim, question_dim, broadcast=broadcast, planes="")
    return _model(object_dim, relation, 256, 256, num_answers)


@register("sort-of-clevr/multirn-rounds-states", image=IMAGE)
def multirn_rounds_states(
    width: int = 176,
    rounds: int = 2,
    object_dim: int = OBJECT_DIM,
    question_dim: int = 11,
    num_answers: int = 10,
) -> ObjectModel:
    """Broadcast after asking over the objects of a scene."""
    relation = RoundsRelation(object_dim, question_dim, width, rounds=rounds, planes="")
    return _model(object_dim, relation, 256, 256, num_answers)


@register("sort-of-clevr/film-states", image=IMAGE)
def film_states(object_dim: int = OBJECT_DIM, question_dim: int = 11, num_answers: int = 10) -> ObjectModel:
    """Four blocks over each object, whose channels the question scales and shifts, and the maximum over objects."""
    return _model(object_dim, FilmObjects(object_dim, question_dim), 256, 256, num_answers)


@register("sort-of-clevr/transformer-states", image=IMAGE)
def transformer_states(object_dim: int = OBJECT_DIM, question_dim: int = 11, num_answers: int = 10) -> ObjectModel:
    """A Transformer encoder over the objects of a scene, the question as one more token."""
    relation = TransformerRelation(object_dim, question_dim, planes="")
    return _model(object_dim, relation, 256, 256, num_answers)


@register("sort-of-clevr/set-transformer-states", image=IMAGE)
def set_transformer_states(object_dim: int = OBJECT_DIM, question_dim: int = 11, num_answers: int = 10) -> ObjectModel:
    """A Set Transformer (ISAB) over the objects of a scene that each see the question."""
    relation = SetTransformerRelation(object_dim, question_dim, planes="")
    return _model(object_dim, relation, 256, 256, num_answers)
