"""Broadcast after asking: multiRN whose vector is pooled when the question is known, again and again.

In equation 4 the BCN's vector is the same for every question. Here each object first sees the question,

    h_i = relu(W [o_i, C_i, q]),

then, in every round, what the objects say is pooled by a maximum and broadcast back to all of them,

    v = max_i(A h_i),    h_i = relu(U [h_i, v, o_i, C_i, q]),

and g, the sum over objects and f follow as in equation 4. A round is O(n), like a BCN, and a chain of r relations can
be followed in r rounds. Not a model of the paper.

The maximum and the sum are the fused ones of the BCN and of multiRN where the width suits them (multiples of 64). They
take what comes before a ReLU, so that is what is kept of each round.

B images of H x W = n objects with C channels and P coordinate planes, Q questions of D numbers about each; W the width
of everything that an object holds.
"""

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bcn.errors import BcnError
from bcn.layers.coordinates import check_planes, planes_like
from bcn.layers.fused import native
from bcn.layers.fused.dispatch import may_fuse
from bcn.layers.fused.max import pooled_max
from bcn.layers.fused.sum import pooled_sum
from bcn.layers.pointwise import ConcatConv1x1
from bcn.layers.relation import check_questions
from bcn.layers.rows import check_map, rows

MAX_ROUNDS = 64
"""longer than any chain of relations; a number from a weights file must not build layers without end"""
Visit = Callable[[ConcatConv1x1, dict[str, Tensor]], None]


class RoundsRelation(nn.Module):
    """The sum over objects i of g(h_i), after rounds of broadcasting.

    >>> RoundsRelation(24, 11)(torch.rand(2, 24, 5, 5), torch.rand(2, 20, 11)).shape
    torch.Size([2, 20, 96])

    Args:
        channels: of the map of objects.
        question_dim: numbers in a question.
        width: of what an object holds, of the vector and of g.
        rounds: how often the objects are told the maximum over all of them, up to MAX_ROUNDS.
        planes, origin: the coordinate planes that an object sees, see `coordinate_planes`.
    """

    def __init__(
        self,
        channels: int,
        question_dim: int,
        width: int = 96,
        *,
        rounds: int = 2,
        planes: str = "xyr",
        origin: str = "centre",
    ) -> None:
        super().__init__()
        check_planes(planes, origin)
        if not 0 <= rounds <= MAX_ROUNDS:
            raise BcnError(f"rounds={rounds}: accepted are 0 to {MAX_ROUNDS}")
        self.planes, self.origin, self.question_dim, self.out_channels = planes, origin, question_dim, width
        sources = (channels, len(planes), question_dim)
        self.first = ConcatConv1x1(sources, width)
        self.says = nn.ModuleList(ConcatConv1x1((width,), width) for _ in range(rounds))
        self.hears = nn.ModuleList(ConcatConv1x1((width, width, *sources), width) for _ in range(rounds))
        self.g = ConcatConv1x1((width,), width)

    def forward(
        self, map_BCHW: Tensor, question: Tensor, mask_Bn: Tensor | None = None, *, visit: Visit | None = None
    ) -> Tensor:
        """The sum over objects for questions (B, D) or (B, Q, D): (B, W) or (B, Q, W).

        Args:
            mask_Bn: bool, the objects that are there; by default all.
            visit: called before each layer, with it and what it sees, dimensions (B, Q, n, channels).
        """
        check_map(map_BCHW, self.first.channels[0])
        check_questions(question, map_BCHW.shape[0], self.question_dim)
        question_BQD = question if question.dim() == 3 else question[:, None]
        for before_BQnW in self.states(map_BCHW, question_BQD, mask_Bn, visit=visit):
            last_BQnW = before_BQnW
        if visit is not None:
            visit(self.g, {"hidden": last_BQnW.relu()})
        total_BQW = self.sum_over_objects(last_BQnW, mask_Bn)
        return total_BQW if question.dim() == 3 else total_BQW[:, 0]

    def states(
        self, map_BCHW: Tensor, question_BQD: Tensor, mask_Bn: Tensor | None = None, *, visit: Visit | None = None
    ) -> Iterator[Tensor]:
        """What the objects hold before the first round, then after each, without its ReLU: (B, Q, n, W)."""

        def apply(layer: nn.Module, **sources: Tensor) -> Tensor:
            assert isinstance(layer, ConcatConv1x1)
            if visit is not None:
                visit(layer, sources)
            return add_parts(layer, *sources.values())

        seen = {
            "objects": rows(map_BCHW)[:, None],
            "planes": rows(planes_like(map_BCHW, self.planes, self.origin))[:, None],
            "question": question_BQD[:, :, None],
        }
        before_BQnW = apply(self.first, **seen)
        yield before_BQnW
        for says, hears in zip(self.says, self.hears, strict=True):
            assert isinstance(says, ConcatConv1x1)
            if visit is not None:
                visit(says, {"hidden": before_BQnW.relu()})
            vector_BQ1W, _ = self.pooled(says, before_BQnW, mask_Bn)
            before_BQnW = apply(hears, hidden=before_BQnW.relu(), broadcast=vector_BQ1W, **seen)
            yield before_BQnW

    def pooled(self, says: ConcatConv1x1, before_BQnW: Tensor, mask_Bn: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The vector of a round, max_i(A relu(h_i)), and the object that each channel came from: (B, Q, 1, W)."""
        if mask_Bn is None:
            value_UW, position_UW = pooled_max(before_BQnW.flatten(0, 1), *_parameters(says))
            shape = (*before_BQnW.shape[:2], 1, says.out_channels)
            return value_UW.view(shape), position_UW.view(shape)
        said_BQnW = add_parts(says, before_BQnW.relu()).masked_fill(~mask_Bn[:, None, :, None], -torch.inf)
        value_BQ1W, position_BQ1W = said_BQnW.max(dim=2, keepdim=True)
        return value_BQ1W, position_BQ1W

    def sum_over_objects(self, last_BQnW: Tensor, mask_Bn: Tensor | None = None) -> Tensor:
        """The sum of g of what the objects hold after the last round, given without its ReLU: (B, Q, W)."""
        weights, biases = _parameters(self.g)
        if mask_Bn is None and may_fuse(last_BQnW, operator=False):
            base_UnW = last_BQnW.flatten(0, 1)
            shift_UW, owner_U = base_UnW.new_zeros(len(base_UnW), base_UnW.shape[2]), torch.arange(len(base_UnW))
            if native.supports(base_UnW, weights, shift_UW, *biases):
                total_UW = pooled_sum(base_UnW, shift_UW, owner_U, weights, biases)
                return total_UW.view(*last_BQnW.shape[:2], self.out_channels)
        summed_BQnW = F.relu(add_parts(self.g, last_BQnW.relu()))
        if mask_Bn is not None:
            summed_BQnW = summed_BQnW.masked_fill(~mask_Bn[:, None, :, None], 0)
        return summed_BQnW.sum(dim=2)

    def extra_repr(self) -> str:
        return f"rounds={len(self.says)}, planes={self.planes!r}, origin={self.origin!r}"


def find_rounds(model: nn.Module) -> RoundsRelation | None:
    """The layer of a model that broadcasts after asking."""
    return next((module for module in model.modules() if isinstance(module, RoundsRelation) and module.says), None)


def _parameters(layer: ConcatConv1x1) -> tuple[list[Tensor], list[Tensor]]:
    """Weights (W, W) and biases of the one layer, as the fused forms take them."""
    assert layer.bias is not None
    return [layer.weight.flatten(1)], [layer.bias]


def add_parts(layer: ConcatConv1x1, *sources: Tensor) -> Tensor:
    """A layer over the concatenation of sources (B, Q, n, channels) that broadcast against each other."""
    assert layer.bias is not None
    same: Tensor = layer.bias
    of_object: Tensor | None = None
    parts = list(zip(sources, layer.parts(), strict=True))
    # What is the same for all objects, and what is not, are added up apart, the terms with fewer rows first: only the
    # last two sums go through a row for each question and object.
    if not torch.compiler.is_exporting():  # where numbers of images, questions and objects stay open
        parts = sorted(parts, key=lambda part: part[0].shape[:-1].numel())
    for source, weight in parts:
        if weight.shape[1]:
            term = F.linear(source, weight)
            if source.shape[-2] == 1:
                same = same + term
            else:
                of_object = term if of_object is None else term + of_object
    return same if of_object is None else of_object + same
