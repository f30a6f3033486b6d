"""Relations between objects: multiRN (section 3, equations 3 and 4) and the Relation Network (equation 2).

An object is a position of a feature map. Both layers give the sum over objects, from which f then answers. The
equations with real concatenations are in `bcn.layers.reference`.

g's first layer sees a concatenation, so it is a sum of what each source adds to it. `base` is the part of the objects
that are summed over. The rest is the same for all of them: the part of the question, and `offset`, a further part of
the image. In multiRN that is the part of the BCN's vector, in RN that of the other object of a pair.

B images of H x W = n objects with C channels, Q questions of D numbers about each; K channels of g's first layer, G of
its last; m offsets of an image: 1 in multiRN, n in RN.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from bcn.errors import BcnError
from bcn.layers.broadcast import BroadcastConv
from bcn.layers.chunks import sum_in_chunks
from bcn.layers.coordinates import check_planes, planes_like
from bcn.layers.fused.dispatch import may_fuse
from bcn.layers.fused.questions import sum_distinct_questions
from bcn.layers.pointwise import Pointwise, further_layers
from bcn.layers.rows import check_map, rows


def check_questions(question: Tensor, images: int, question_dim: int) -> None:
    if question.dim() not in (2, 3) or question.shape[0] != images or question.shape[-1] != question_dim:
        raise BcnError(
            f"questions have the shape {tuple(question.shape)}: accepted for {images} images is "
            f"({images}, {question_dim}), or ({images}, Q, {question_dim}) for Q questions about each"
        )


class _Relation(nn.Module, ABC):
    """What both have in common: g is 1x1 convolutions, the first over a concatenation that ends with the question."""

    def __init__(
        self, sources: Sequence[int], question_dim: int, sizes: Sequence[int], planes: str, origin: str
    ) -> None:
        super().__init__()
        check_planes(planes, origin)
        self.planes, self.origin, self.question_dim = planes, origin, question_dim
        self.g = Pointwise((*sources, question_dim), sizes)
        self.out_channels = sizes[-1]

    def forward(self, map_BCHW: Tensor, question: Tensor | None = None, mask_Bn: Tensor | None = None) -> Tensor:
        """The sum over objects for questions (B, D) or (B, Q, D): (B, G) or (B, Q, G); without questions (B, G).

        Args:
            mask_Bn: bool, the objects that are there; by default all.
        """
        check_map(map_BCHW, self.g.first.channels[0])
        if question is None:
            question = map_BCHW.new_empty(map_BCHW.shape[0], 0)
        check_questions(question, map_BCHW.shape[0], self.question_dim)
        question_BQD = question if question.dim() == 3 else question[:, None]
        base_BnK, offset_BmK = self._first_layer(map_BCHW, mask_Bn)
        weights, biases = self.g.rest_parameters()
        if mask_Bn is None and weights and may_fuse(base_BnK, question_BQD, operator=True):
            total_BQG = sum_distinct_questions(base_BnK, offset_BmK, question_BQD, self._of_question(), weights, biases)
        else:
            shift_BQK = F.linear(question_BQD, self._of_question())
            terms = None if mask_Bn is None else self._terms(mask_Bn)
            total_BQG = sum_in_chunks(base_BnK, shift_BQK, offset_BmK, weights, biases, terms)
        return total_BQG if question.dim() == 3 else total_BQG[:, 0]

    @abstractmethod
    def _first_layer(self, map_BCHW: Tensor, mask_Bn: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """What the image adds to g's first layer: `base` (B, n, K) for each object, and `offset` (B, m, K) to all."""

    @abstractmethod
    def _terms(self, mask_Bn: Tensor) -> Tensor:
        """Which terms of the sum are of objects that are there: (B, m, n)."""

    def _of_question(self) -> Tensor:
        """The part of g's first weight that sees the question: (K, D)."""
        return self.g.first.part(-1)

    def _coordinates(self, map_BCHW: Tensor) -> Tensor:
        """The coordinate planes of a map, as rows (1, n, P)."""
        return rows(planes_like(map_BCHW, self.planes, self.origin))


class MultiRelation(_Relation):
    """Equations 3 and 4 without f: the sum over objects i of g(o_i, BCN(O), question).

    >>> import torch
    >>> relation = MultiRelation(24, 11, broadcast=BroadcastConv(24))
    >>> relation(torch.rand(2, 24, 10, 10), torch.rand(2, 20, 11)).shape
    torch.Size([2, 20, 256])

    Args:
        channels: of the map of objects.
        question_dim: numbers in a question; 0 without questions.
        sizes: the channels of each layer of g.
        broadcast: the BCN; without one g sees [o_i, C, question].
        planes, origin: the coordinate planes that g sees, see `coordinate_planes`.
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

    def _first_layer(self, map_BCHW: Tensor, mask_Bn: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        base_BnK = self.g.first.forward_rows(rows(map_BCHW), None, self._coordinates(map_BCHW), None)
        if self.broadcast is None:
            return base_BnK, None
        vector_BK, _ = self.broadcast.pooled(map_BCHW, mask_Bn)
        return base_BnK, F.linear(vector_BK, self.g.first.part(1))[:, None]

    def _terms(self, mask_Bn: Tensor) -> Tensor:
        return mask_Bn[:, None]

    def sources(
        self, map_BCHW: Tensor, question: Tensor | None = None, mask_Bn: Tensor | None = None
    ) -> dict[str, Tensor]:
        """What g's first layer sees of each part of [o_i, BCN(O), C, question], in the order of its weights: rows."""
        objects = rows(map_BCHW)
        sources = {"objects": objects if mask_Bn is None else objects[mask_Bn], "broadcast": map_BCHW.new_empty(1, 0)}
        if self.broadcast is not None:
            sources["broadcast"] = self.broadcast.pooled(map_BCHW, mask_Bn)[0]
        sources |= {"planes": self._coordinates(map_BCHW), "question": map_BCHW.new_empty(1, 0)}
        if question is not None:
            sources["question"] = question
        return {name: source.flatten(0, -2) for name, source in sources.items()}

    def g_of_objects(self, map_BCHW: Tensor, question_BQD: Tensor, object_BT: Tensor) -> Tensor:
        """g of T of an image's objects by themselves, before its last ReLU and the sum: (B, Q, T, G)."""
        base_BnK, offset_B1K = self._first_layer(map_BCHW)
        base_BTK = base_BnK.take_along_dim(object_BT[..., None], 1)
        shift_BQK = F.linear(question_BQD, self._of_question())
        shift_BQK = shift_BQK if offset_B1K is None else shift_BQK + offset_B1K
        return further_layers(base_BTK[:, None] + shift_BQK[:, :, None], *self.g.rest_parameters())


class PairRelation(_Relation):
    """Equation 2 without f: the sum over all pairs of objects i, j of g(o_i, o_j, question).

    The sum over j is taken with i's part as the offset, and then over i. On the CPU no pair is held, but for a bit of
    each last activation; elsewhere a chunk of pairs at a time.

    >>> import torch
    >>> PairRelation(24, 11)(torch.rand(2, 24, 5, 5), torch.rand(2, 20, 11)).shape
    torch.Size([2, 20, 256])

    Args:
        channels: of the map of objects.
        question_dim: numbers in a question; 0 without questions.
        sizes: the channels of each layer of g.
        planes, origin: the coordinate planes of an object, see `coordinate_planes`.
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

    def _terms(self, mask_Bn: Tensor) -> Tensor:
        return mask_Bn[:, :, None] & mask_Bn[:, None]

    def _first_layer(self, map_BCHW: Tensor, mask_Bn: Tensor | None = None) -> tuple[Tensor, Tensor]:
        objects_BnC, planes_1nP = rows(map_BCHW), self._coordinates(map_BCHW)
        of_i, of_i_planes, *_ = self.g.first.parts()
        by_i_BnK = F.linear(objects_BnC, of_i) + F.linear(planes_1nP, of_i_planes)
        by_j_BnK = self.g.first.forward_rows(None, None, objects_BnC, planes_1nP, None)
        return by_j_BnK, by_i_BnK
