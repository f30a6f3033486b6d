"""Broadcast after asking: multiRN whose vector is pooled when the question is known, again and again.

In equation 4 the BCN's vector is the same for every question. Here each object first sees the question,

    h_i = relu(W [o_i, C_i, q]),

then, in every round, what the objects say is pooled by a maximum and broadcast back to all of them,

    v = max_i(A h_i),    h_i = relu(U [h_i, v, o_i, C_i, q]),

and g, the sum over objects and f follow as in equation 4. A round is O(n), like a BCN, and a chain of r relations can
be followed in r rounds. Not a model of the paper.

B images of H x W = n objects with C channels and P coordinate planes, Q questions of D numbers about each; W the width
of everything that an object holds.
"""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from bcn.layers.coordinates import check_planes, planes_like
from bcn.layers.pointwise import ConcatConv1x1
from bcn.layers.relation import check_questions
from bcn.layers.rows import check_map, rows

Visit = Callable[[ConcatConv1x1, dict[str, Tensor]], None]


class RoundsRelation(nn.Module):
    """The sum over objects i of g(h_i), after rounds of broadcasting.

    >>> import torch
    >>> RoundsRelation(24, 11)(torch.rand(2, 24, 5, 5), torch.rand(2, 20, 11)).shape
    torch.Size([2, 20, 96])

    Args:
        channels: of the map of objects.
        question_dim: numbers in a question.
        width: of what an object holds, of the vector and of g.
        rounds: how often the objects are told the maximum over all of them.
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
        self.planes, self.origin, self.question_dim, self.out_channels = planes, origin, question_dim, width
        sources = (channels, len(planes), question_dim)
        self.first = ConcatConv1x1(sources, width)
        self.says = nn.ModuleList(ConcatConv1x1((width,), width) for _ in range(rounds))
        self.hears = nn.ModuleList(ConcatConv1x1((width, width, *sources), width) for _ in range(rounds))
        self.g = ConcatConv1x1((width,), width)

    def forward(self, map_BCHW: Tensor, question: Tensor, *, visit: Visit | None = None) -> Tensor:
        """The sum over objects for questions (B, D) or (B, Q, D): (B, W) or (B, Q, W).

        Args:
            visit: called before each layer, with it and what it sees, dimensions (B, Q, n, channels).
        """
        check_map(map_BCHW, self.first.channels[0])
        check_questions(question, map_BCHW.shape[0], self.question_dim)

        def apply(layer: nn.Module, **sources: Tensor) -> Tensor:
            assert isinstance(layer, ConcatConv1x1)
            if visit is not None:
                visit(layer, sources)
            return add_parts(layer, *sources.values())

        seen = {
            "objects": rows(map_BCHW)[:, None],
            "planes": rows(planes_like(map_BCHW, self.planes, self.origin))[:, None],
            "question": (question if question.dim() == 3 else question[:, None])[:, :, None],
        }
        hidden_BQnW = F.relu(apply(self.first, **seen))
        for says, hears in zip(self.says, self.hears, strict=True):
            vector_BQ1W = apply(says, hidden=hidden_BQnW).amax(dim=2, keepdim=True)
            hidden_BQnW = F.relu(apply(hears, hidden=hidden_BQnW, broadcast=vector_BQ1W, **seen))
        total_BQW = F.relu(apply(self.g, hidden=hidden_BQnW)).sum(dim=2)
        return total_BQW if question.dim() == 3 else total_BQW[:, 0]

    def extra_repr(self) -> str:
        return f"rounds={len(self.says)}, planes={self.planes!r}, origin={self.origin!r}"


def add_parts(layer: ConcatConv1x1, *sources: Tensor) -> Tensor:
    """A layer over the concatenation of sources that broadcast against each other, channels last."""
    assert layer.bias is not None
    total: Tensor = layer.bias
    parts = zip(sources, layer.parts(), strict=True)
    # The terms with fewer rows first, so that the large ones are gone through once.
    for source, weight in sorted(parts, key=lambda part: part[0].shape[:-1].numel()):
        if weight.shape[1]:
            total = F.linear(source, weight) + total
    return total
