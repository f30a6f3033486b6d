"""Auxiliary supervision: heads and a loss that learn from scene annotations. They are not part of the trained model.

Object supervision pre-trains the CNN alone: from the object at a place, a linear layer tells whether something is there
and what it is. Referent supervision trains the whole model to tell the objects that a question refers to from others,
first alone, then beside the answers. A model that broadcasts in rounds is trained to tell the objects of each step of
the question's program as well: before round r + 1 those of step r, which it is then to tell the others about, and after
the last round the referents. Not in the paper; `docs/guides/clevr.md` says what it brings.

B images of H x W objects with C channels and T points, Q questions about each, A answers, n objects, R roles of a point
in a question, each in c channels; S steps of it, as many as there are rounds, of two sets each.
"""

import math
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bcn.data.dataset import Batch, Dataset, Preprocessing
from bcn.errors import BcnError
from bcn.layers.fused.dispatch import on_accelerator
from bcn.layers.relation import MultiRelation
from bcn.layers.rounds import RoundsRelation, add_parts
from bcn.layers.rows import rows
from bcn.models.question_encoder import PackedQuestions
from bcn.models.registry import create_model, image_shape
from bcn.models.relation_model import QuestionAnswerer, RelationModel
from bcn.training.forward import question_of
from bcn.training.losses import answer_loss
from bcn.training.recipe import Auxiliary, Recipe

ROLE_WEIGHT, MARGIN = 3.0, 0.3
"""of the referent loss: the weight of roles that a point has, which are few, and how far below 0 others are to be"""
INITIAL_SCALE, INITIAL_BIAS = 0.3, -0.4
"""of the layer that scores roles: a factor of its weights, and its biases"""


def open_supervision(recipe: Recipe, train: Dataset) -> tuple[Dataset, Dataset | None]:
    """The training split, with referents where the recipe trains them, and the data set of object supervision."""
    auxiliary = recipe.auxiliary or Auxiliary()
    if not auxiliary.epochs:
        return train, None
    grid = object_grid(recipe.model)
    objects = train.object_supervision(grid) if auxiliary.object_epochs else None
    referents: Dataset | None = train
    if auxiliary.referent_epochs:
        referents = train.referent_supervision(steps=count_rounds(recipe))
    if referents is None or (objects is None and auxiliary.object_epochs):
        raise BcnError(f"{train.name} has no scene annotations for auxiliary supervision: train with auxiliary=none")
    return referents, objects


def object_grid(name: str) -> tuple[int, int]:
    """Rows and columns of the map of objects that a model makes of an image of its size."""
    with torch.device("meta"):
        model = create_model(name)
        if not isinstance(model, RelationModel | QuestionAnswerer) or not isinstance(reasoner(model), RelationModel):
            raise BcnError(f"{name} has no map of objects for auxiliary supervision: train with auxiliary=none")
        grid_rows, columns = model.features(torch.empty((1, *image_shape(name)))).shape[-2:]
    return grid_rows, columns


def reasoner(model: nn.Module) -> RelationModel:
    """The part of a model that sees the image and questions as numbers."""
    return cast(RelationModel, model.answer if isinstance(model, QuestionAnswerer) else model)


def count_rounds(recipe: Recipe) -> int:
    """How often a recipe's model broadcasts after asking; most do not."""
    with torch.device("meta"):
        model = create_model(recipe.model, **dict(recipe.arguments))
    return sum(len(module.says) for module in model.modules() if isinstance(module, RoundsRelation))


def make_heads(recipe: Recipe, model: nn.Module, train: Dataset, objects: Dataset | None) -> nn.ModuleDict:
    """The heads that a recipe trains beside its model: "objects", "referents", both or none.

    Args:
        train, objects: the data sets of `open_supervision`.
    """
    heads = nn.ModuleDict()
    if objects is not None:
        heads["objects"] = make_object_head(model, kinds=len(objects.kinds), answers=len(objects.answers))
    if recipe.auxiliary is not None and recipe.auxiliary.referent_epochs:
        targets = train[[0]].auxiliary
        assert targets is not None
        heads["referents"] = ReferentHead(
            model, roles=targets["role"].shape[-1], objects=math.prod(object_grid(recipe.model))
        )
    return heads


def cell_index(place_BQ2: Tensor, height: int, width: int) -> Tensor:
    """The index, row by row, of the cell of an H x W map at each place (x, y), in units of the map's width and height.

    >>> cell_index(torch.tensor([[[0.0, 0.0], [0.99, 0.0], [0.3, 0.6]]]), 2, 4)
    tensor([[0, 3, 5]])
    """
    x_BQ, y_BQ = place_BQ2.unbind(-1)
    return (y_BQ * height).long() * width + (x_BQ * width).long()


class GatherObject(nn.Module):
    """The object at the place of a question (x, y, kind), x and y from 0 to below 1, and the kind, one-hot.

    >>> GatherObject(5)(torch.rand(2, 24, 16, 16), torch.rand(2, 40, 3)).shape
    torch.Size([2, 40, 29])
    """

    question_dim = 3

    def __init__(self, kinds: int) -> None:
        super().__init__()
        self.kinds = kinds

    def forward(self, map_BCHW: Tensor, question_BQ3: Tensor) -> Tensor:
        object_BQ, kind_BQ = cell_index(question_BQ3[..., :2], *map_BCHW.shape[-2:]), question_BQ3[..., 2]
        object_BQC = rows(map_BCHW).take_along_dim(object_BQ[..., None], 1)
        return torch.cat([object_BQC, F.one_hot(kind_BQ.long(), self.kinds).to(object_BQC)], dim=-1)


def make_object_head(model: nn.Module, *, kinds: int, answers: int) -> RelationModel:
    """The model's CNN, with one linear layer that answers questions about places.

    What a linear layer can tell apart, g can as well, from its first layer on.
    """
    encoder = cast(nn.Sequential, reasoner(model).encoder)
    channels = cast(nn.Conv2d, encoder[-1].conv).out_channels
    return RelationModel(encoder, GatherObject(kinds), nn.Linear(channels + kinds, answers))


class Scores(NamedTuple):
    """What a `ReferentHead` gives for the points of a batch."""

    logits: Tensor | None
    """(B, Q, A), None without answers"""
    role: Tensor
    """(B, Q, T, c, R)"""
    object: Tensor
    """(B, T) index of the object at each point"""
    step: Tensor | None = None
    """(B, Q, T, S, 2) of a model with rounds"""


class ReferentHead(nn.Module):
    """A model that scores the roles of points in a question, and answers it.

    A multiRN scores with g: each of its channels stands for one role, and is zero for objects that do not have it, so
    that only referents are in the sum. With rounds, a linear layer for each of them scores what an object holds before
    the round: what such a layer can tell, the round can broadcast. A model without a vector for each object scores all
    n of them at once, by a linear layer beside the one that answers.
    """

    def __init__(self, model: nn.Module, *, roles: int, objects: int) -> None:
        super().__init__()
        answer = reasoner(model)
        relation = answer.relation
        self.steps = nn.ModuleList()
        if isinstance(relation, RoundsRelation):
            if relation.out_channels % roles:
                raise BcnError(f"width={relation.out_channels}: accepted with referents are multiples of {roles}")
            self.steps.extend(nn.Linear(relation.out_channels, 2) for _ in relation.says)
        elif not isinstance(relation, MultiRelation):
            hidden = cast(nn.Linear, cast(nn.Sequential, answer.f)[-1]).in_features
            self.score = nn.Linear(hidden, objects * roles)
        self.model, self.roles = model, roles  # after the layers that score, so that Muon sees the answers' layer last
        self.lower_scores()
        for step in self.steps:
            _lower(step)

    @property
    def scoring_layer(self) -> nn.Module:
        """The layer that scores roles."""
        relation = reasoner(self.model).relation
        if isinstance(relation, RoundsRelation):
            return relation.g
        return relation.g[-1] if isinstance(relation, MultiRelation) else self.score

    def lower_scores(self) -> None:
        """Make nearly all scores of roles negative at the start."""
        _lower(self.scoring_layer)

    def forward(
        self, image_BCHW: Tensor, question: Tensor | PackedQuestions, point_BT2: Tensor, *, answers: bool = True
    ) -> Scores:
        answer = reasoner(self.model)
        relation, f = answer.relation, cast(nn.Sequential, answer.f)
        model, map_BCHW = self.model, answer.features(image_BCHW)
        question_BQD = cast(
            Tensor, model.question_encoder(question) if isinstance(model, QuestionAnswerer) else question
        )
        object_BT = cell_index(point_BT2.nan_to_num().clamp(0, 1 - 1e-6), *map_BCHW.shape[-2:])
        step_BQTS2 = None
        if isinstance(relation, MultiRelation):
            logits_BQA = f(relation(map_BCHW, question_BQD)) if answers else None
            score_BQTG = relation.g_of_objects(map_BCHW, question_BQD, object_BT)
        elif isinstance(relation, RoundsRelation):
            states = list(relation.states(map_BCHW, question_BQD))
            logits_BQA = f(relation.sum_over_objects(states[-1])) if answers else None
            *before, last_BQTW = (state.take_along_dim(object_BT[:, None, :, None], 2).relu() for state in states)
            score_BQTG = add_parts(relation.g, last_BQTW)
            step_BQTS2 = torch.stack([score(held) for score, held in zip(self.steps, before, strict=True)], dim=-2)
        else:
            hidden_BQH = f[:-1](relation(map_BCHW, question_BQD))
            logits_BQA = f[-1](hidden_BQH) if answers else None
            score_BQnR = self.score(hidden_BQH).unflatten(-1, (-1, self.roles))
            score_BQTG = score_BQnR.take_along_dim(object_BT[:, None, :, None], 2)
        return Scores(logits_BQA, score_BQTG.unflatten(-1, (-1, self.roles)), object_BT, step_BQTS2)


@torch.no_grad()
def _lower(layer: nn.Module) -> None:
    """Nearly all scores are to be negative: were that to be learned first, the CNN would forget the objects."""
    cast(Tensor, layer.weight).mul_(INITIAL_SCALE)
    cast(Tensor, layer.bias).fill_(INITIAL_BIAS)


def referent_loss(score_BQTcR: Tensor, object_BT: Tensor, batch: Batch) -> Tensor:
    """Squared distance of scores from 1 for the roles that a point has, from below -MARGIN for others.

    It is summed over roles, averaged over the points of an image, and summed over questions. Points in the same object
    share their roles.
    """
    assert batch.auxiliary is not None
    role_BQTR = batch.auxiliary["role"]
    distance_BQTcR = _distances(score_BQTcR, role_BQTR[..., None, :], object_BT, batch)
    return _sum_over_questions(distance_BQTcR.mean(-2).sum(-1), batch)


def step_losses(score_BQTS2: Tensor, object_BT: Tensor, batch: Batch) -> Tensor:
    """The same for the two sets of each step: (S,)."""
    assert batch.auxiliary is not None
    distance_BQTS = _distances(score_BQTS2, batch.auxiliary["step"], object_BT, batch).sum(-1)
    return torch.stack([_sum_over_questions(distance_BQT, batch) for distance_BQT in distance_BQTS.unbind(-1)])


def _distances(score_BQTcR: Tensor, role_BQTcR: Tensor, object_BT: Tensor, batch: Batch) -> Tensor:
    score_BQTcR = score_BQTcR.float() if score_BQTcR.dtype == torch.bfloat16 else score_BQTcR
    same_BTT = (object_BT[:, :, None] == object_BT[:, None]) & _valid_points(batch)[:, None]
    role_BQTcR = torch.einsum("bts,bqscr->bqtcr", same_BTT.to(role_BQTcR), role_BQTcR).clamp(max=1)
    too_low, too_high = (1 - score_BQTcR).square(), F.relu(score_BQTcR + MARGIN).square()
    return ROLE_WEIGHT * role_BQTcR * too_low + (1 - role_BQTcR) * too_high


def _sum_over_questions(loss_BQT: Tensor, batch: Batch) -> Tensor:
    valid_BT, asked_BQ = _valid_points(batch), batch.answer >= 0
    mean_BQ = (loss_BQT * valid_BT[:, None]).sum(-1) / valid_BT.sum(-1, keepdim=True).clamp(min=1)
    return (mean_BQ.where(asked_BQ, 0) if on_accelerator(mean_BQ) else mean_BQ[asked_BQ]).sum()


def _valid_points(batch: Batch) -> Tensor:
    """Which points are there: bool (B, T)."""
    assert batch.auxiliary is not None
    return ~batch.auxiliary["point"].isnan().any(-1)


class ReferentLoss(nn.Module):
    """A `ReferentHead` with its loss: from a batch to the summed loss of referents, of the steps to them and, with
    `answers`, of answers."""

    def __init__(self, head: ReferentHead, preprocessing: Preprocessing, *, answers: bool) -> None:
        super().__init__()
        self.head, self.preprocessing, self.answers = head, preprocessing, answers

    def forward(self, batch: Batch) -> Tensor:
        assert batch.auxiliary is not None
        scores: Scores = self.head(
            self.preprocessing(batch.image), question_of(batch), batch.auxiliary["point"], answers=self.answers
        )
        loss = referent_loss(scores.role, scores.object, batch)
        if scores.step is not None:
            loss = loss + step_losses(scores.step, scores.object, batch).sum()
        return loss if scores.logits is None else loss + answer_loss(scores.logits, None, batch, localise=False)
