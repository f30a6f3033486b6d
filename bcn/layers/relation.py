"""Relations between objects: multiRN (section 3, equations 3 and 4) and the Relation Network (equation 2).

An object is a position of a feature map. Both layers give the sum from which f then answers.

B images of H x W = n objects with C channels, Q questions of D numbers about each, U distinct questions in all;
K channels of g's first layer, G of its last.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bcn.errors import BcnError
from bcn.layers.broadcast import BroadcastConv
from bcn.layers.coordinates import check_planes, coordinate_planes
from bcn.layers.fused.sum import literal, literal_sum, pooled_sum
from bcn.layers.pointwise import Pointwise, check_map, check_sizes, rows


def _distinct(owner_U: Tensor, question_UD: Tensor) -> tuple[Tensor, Tensor] | None:
    """What is asked twice about one image is computed once: the first of each, and which of those each one is.

    None where nothing is asked twice.
    """
    size = question_UD.shape[1] * question_UD.element_size()
    data = question_UD.contiguous().view(torch.uint8).numpy().tobytes() if size else b""
    seen: dict[tuple[int, bytes], int] = {}
    which = [
        seen.setdefault((owner, data[u * size : (u + 1) * size]), len(seen)) for u, owner in enumerate(owner_U.tolist())
    ]
    if len(seen) == len(which):
        return None
    first = dict(zip(reversed(which), reversed(range(len(which))), strict=True))
    return torch.tensor([first[index] for index in range(len(seen))]).long(), torch.tensor(which).long()


def check_questions(question: Tensor, images: int, numbers: int) -> None:
    if question.dim() not in (2, 3) or question.shape[0] != images or question.shape[-1] != numbers:
        raise BcnError(
            f"questions have the shape {tuple(question.shape)}: accepted for {images} images is ({images}, {numbers}), "
            f"or ({images}, Q, {numbers}) for Q questions about each"
        )


class _Relation(nn.Module, ABC):
    """What both have in common: g is 1x1 convolutions, the first over a concatenation that ends with the question."""

    def __init__(
        self, sources: Sequence[int], question_dim: int, sizes: Sequence[int], planes: str, origin: str
    ) -> None:
        super().__init__()
        check_planes(planes, origin)
        check_sizes(sources[0], sizes)
        self.planes, self.origin, self.question_dim = planes, origin, question_dim
        self.out_channels = sizes[-1]
        self.g = Pointwise((*sources, question_dim), sizes)

    def forward(self, map_BCHW: Tensor, question: Tensor | None = None) -> Tensor:
        """The sum over objects for questions (B, D) or (B, Q, D): (B, G) or (B, Q, G); without questions (B, G)."""
        check_map(map_BCHW, self.g.first.channels[0])
        images = map_BCHW.shape[0]
        if question is None:
            question = map_BCHW.new_empty(images, 0)
        check_questions(question, images, self.question_dim)
        if question.dim() == 2:
            return self._answer(map_BCHW, question[:, None])[:, 0]
        return self._answer(map_BCHW, question)

    def _answer(self, map_BCHW: Tensor, question_BQD: Tensor) -> Tensor:
        *_, of_question = self.g.first.parts()
        if not map_BCHW.is_cpu or torch.is_autocast_enabled("cpu") or torch.compiler.is_exporting():
            return self._relate(map_BCHW, F.linear(question_BQD, of_question), None)
        images, questions = question_BQD.shape[:2]
        owner_U = torch.arange(images, device=question_BQD.device).repeat_interleave(questions)
        question_UD = question_BQD.flatten(0, 1)
        learned = question_BQD.requires_grad or torch.compiler.is_compiling()
        distinct = None if learned else _distinct(owner_U, question_UD)
        if distinct is None:
            total_UG = self._relate(map_BCHW, F.linear(question_UD, of_question), owner_U)
        else:
            first, which = distinct
            shift = F.linear(question_UD[first], of_question)
            total_UG = self._relate(map_BCHW, shift, owner_U[first]).index_select(0, which)
        return total_UG.view(images, questions, self.out_channels)

    @abstractmethod
    def _relate(self, map_BCHW: Tensor, shift: Tensor, owner_U: Tensor | None) -> Tensor:
        """The sums for what questions add to g's first layer: (U, K) about the images owner[u], or else (B, Q, K)."""

    def _rest(self) -> tuple[list[Tensor], list[Tensor]]:
        """Weights and biases of g after its first layer."""
        weights = [layer.weight.flatten(1) for layer in self.g.rest]
        return weights, [layer.bias for layer in self.g.rest if layer.bias is not None]

    def _sum(self, base_BnK: Tensor, shift: Tensor, owner_U: Tensor | None) -> Tensor:
        weights, biases = self._rest()
        if owner_U is None:
            return literal_sum(base_BnK, shift, weights, biases)
        if not weights:  # g is one layer, and nothing is left of it to hold back
            return literal_sum(base_BnK[owner_U], shift[:, None], weights, biases)[:, 0]
        return pooled_sum(base_BnK, shift, owner_U, weights, biases)

    def _planes(self, map_BCHW: Tensor) -> Tensor:
        """The coordinate planes of a map, as rows (1, n, P)."""
        height, width = map_BCHW.shape[-2:]
        return rows(
            coordinate_planes(height, width, self.planes, self.origin, dtype=map_BCHW.dtype, device=map_BCHW.device)
        )


class MultiRelation(_Relation):
    """Equations 3 and 4 without f: the sum over objects i of g(o_i, BCN(O), question).

    >>> relation = MultiRelation(24, 11, broadcast=BroadcastConv(24))
    >>> relation(torch.rand(2, 24, 10, 10), torch.rand(2, 20, 11)).shape
    torch.Size([2, 20, 256])
    """

    def __init__(
        self,
        channels: int,
        question_dim: int = 0,
        sizes: Sequence[int] = (256, 256),
        *,
        broadcast: BroadcastConv | None,
        planes: str = "xyr",
        origin: str = "centre",
    ) -> None:
        vector = broadcast.out_channels if broadcast is not None else 0
        super().__init__((channels, vector, len(planes)), question_dim, sizes, planes, origin)
        self.broadcast = broadcast

    def each(self, map_BCHW: Tensor, question_BQD: Tensor, object_BT: Tensor) -> Tensor:
        """g of T of an image's objects by themselves, before its last ReLU and the sum: (B, Q, T, G)."""
        base_BnK, shift_BQK = self._first(map_BCHW, F.linear(question_BQD, self.g.first.parts()[-1]), None)
        return literal(base_BnK.take_along_dim(object_BT[..., None], 1), shift_BQK, *self._rest())

    def _relate(self, map_BCHW: Tensor, shift: Tensor, owner_U: Tensor | None) -> Tensor:
        return self._sum(*self._first(map_BCHW, shift, owner_U), owner_U)

    def _first(self, map_BCHW: Tensor, shift: Tensor, owner_U: Tensor | None) -> tuple[Tensor, Tensor]:
        """g's first layer in two parts, whose sum it is: what objects give, and what question and BCN give."""
        base_BnK = self.g.first.forward_rows(rows(map_BCHW), None, self._planes(map_BCHW), None)
        if self.broadcast is not None:
            # What is broadcast is the same for all objects, as a question is, and there are fewer questions.
            by_vector_BK = F.linear(self.broadcast.pooled(map_BCHW)[0], self.g.first.parts()[1])
            shift = shift + (by_vector_BK[:, None] if owner_U is None else by_vector_BK.index_select(0, owner_U))
        return base_BnK, shift


class PairRelation(_Relation):
    """Equation 2 without f: the sum over all pairs of objects i, j of g(o_i, o_j, question).

    g's first layer over a pair is what i gives plus what j gives, so each i shifts all j as a question does: the hot
    loop runs over the questions of every i, and on the CPU no pair is held, but for a bit of each last activation.

    >>> PairRelation(24, 11)(torch.rand(2, 24, 5, 5), torch.rand(2, 20, 11)).shape
    torch.Size([2, 20, 256])
    """

    def __init__(
        self,
        channels: int,
        question_dim: int = 0,
        sizes: Sequence[int] = (256, 256, 256, 256),
        *,
        planes: str = "xyr",
        origin: str = "centre",
    ) -> None:
        super().__init__((channels, len(planes), channels, len(planes)), question_dim, sizes, planes, origin)

    def _relate(self, map_BCHW: Tensor, shift: Tensor, owner_U: Tensor | None) -> Tensor:
        objects, planes, first = rows(map_BCHW), self._planes(map_BCHW), self.g.first
        of_i, of_i_planes, *_ = first.parts()
        by_i_BnK = F.linear(objects, of_i) + F.linear(planes, of_i_planes)
        by_j_BnK = first.forward_rows(None, None, objects, planes, None)
        if owner_U is None:
            shifts = (shift[:, :, None] + by_i_BnK[:, None]).flatten(1, 2)
            return (
                self._sum(by_j_BnK, shifts, None).view(*shift.shape[:2], objects.shape[1], self.out_channels).sum(dim=2)
            )
        shifts = (shift[:, None] + by_i_BnK[owner_U]).flatten(0, 1)
        pairs = self._sum(by_j_BnK, shifts, owner_U.repeat_interleave(objects.shape[1]))
        return pairs.view(len(shift), objects.shape[1], self.out_channels).sum(dim=1)
