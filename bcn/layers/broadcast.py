"""The Broadcasting Convolutional Network (section 2 of the paper).

Equation 1 with real concatenations is in `bcn.layers.reference`; this is the same function, and the same parameters,
without building [F, C] and without holding the map that the maximum is taken of.

B images, F the input map of n' channels and H x W = n positions, C its P coordinate planes, k the 1x1 convolutions,
K channels of the broadcast vector.
"""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bcn.errors import BcnError
from bcn.layers.activation import safe_relu
from bcn.layers.coordinates import check_planes, planes_like
from bcn.layers.fused.max import pooled_max
from bcn.layers.pointwise import Pointwise, further_layers
from bcn.layers.rows import as_map, check_map, rows
from bcn.layers.tracing import whole_under_fx

POOLS = ("max", "average")


class SkipConv(nn.Module):
    """[F, C] * k: 1x1 convolutions with ReLU over a map and its coordinate planes (the skip-connection of table 1).

    >>> SkipConv(24, (64, 64, 128), planes="xyr")(torch.rand(2, 24, 8, 8)).shape
    torch.Size([2, 128, 8, 8])

    Args:
        channels: of the map.
        sizes: the channels of each convolution.
        planes, origin: the coordinate planes, see `coordinate_planes`.
    """

    def __init__(
        self, channels: int, sizes: Sequence[int] = (128, 128, 256), *, planes: str = "", origin: str = "centre"
    ) -> None:
        super().__init__()
        check_planes(planes, origin)
        self.planes, self.origin = planes, origin
        self.k = Pointwise((channels, len(planes)), sizes)
        self.out_channels = sizes[-1]

    @whole_under_fx
    def forward(self, map_BCHW: Tensor) -> Tensor:
        last_BnK = further_layers(self._first_layer(map_BCHW), *self.k.rest_parameters())
        return as_map(safe_relu(last_BnK), map_BCHW)

    def coordinates(self, map_BCHW: Tensor) -> Tensor:
        """C, the coordinate planes of a map: (P, H, W)."""
        return planes_like(map_BCHW, self.planes, self.origin)

    def _first_layer(self, map_BCHW: Tensor) -> Tensor:
        """The first convolution over [F, C], before its ReLU: rows (B, n, S)."""
        check_map(map_BCHW, self.k.first.channels[0])
        return self.k.first.forward_rows(rows(map_BCHW), rows(self.coordinates(map_BCHW)))

    def extra_repr(self) -> str:
        return f"planes={self.planes!r}, origin={self.origin!r}"


class BroadcastConv(SkipConv):
    """Equation 1: BCN(F) = [E(max([F, C] * k), h, w), C].

    >>> bcn = BroadcastConv(24, (64, 64, 128))
    >>> bcn(torch.rand(2, 24, 8, 6)).shape  # 128 broadcast channels and 3 planes
    torch.Size([2, 131, 8, 6])

    Args:
        channels: of the map.
        sizes: the channels of each convolution of k; the last is K.
        planes, origin: the coordinate planes, see `coordinate_planes`.
        pool: "max" as in equation 1, or "average", a row of table 1.
        final_relu: whether a ReLU follows the last convolution of k, which the paper leaves open. With it, a channel
            whose maximum is negative for every image gets no gradient any more and stays dead; in our runs of table 3
            nearly all channels die that way, and without it none (docs/results/broadcast.md).
        negative_slope: the slope of that ReLU below zero; above 0 it is a leaky ReLU.
    """

    def __init__(
        self,
        channels: int,
        sizes: Sequence[int] = (128, 128, 256),
        *,
        planes: str = "xyr",
        origin: str = "centre",
        pool: str = "max",
        final_relu: bool = False,
        negative_slope: float = 0.0,
    ) -> None:
        super().__init__(channels, sizes, planes=planes, origin=origin)
        if pool not in POOLS:
            raise BcnError(f"pool {pool!r} is unknown: accepted are {' and '.join(map(repr, POOLS))}")
        if not 0 <= negative_slope <= 1 or (negative_slope and not final_relu):
            raise BcnError(
                f"negative_slope={negative_slope}, final_relu={final_relu}: accepted is a slope from 0 to 1, and 0 "
                "where there is no final ReLU"
            )
        self.pool, self.final_relu, self.negative_slope = pool, final_relu, negative_slope

    def final(self, last: Tensor) -> Tensor:
        """What follows the last convolution of k: ReLU, leaky ReLU or nothing."""
        if not self.final_relu:
            return last
        return F.leaky_relu(last, self.negative_slope) if self.negative_slope else F.relu(last)

    @whole_under_fx
    def forward(self, map_BCHW: Tensor) -> Tensor:
        vector_BK, _ = self.pooled(map_BCHW)  # max([F, C] * k)
        expanded_BKHW = vector_BK[:, :, None, None].expand(-1, -1, *map_BCHW.shape[-2:])  # E(..., h, w)
        planes_BPHW = self.coordinates(map_BCHW).expand(map_BCHW.shape[0], -1, -1, -1)  # C
        return torch.cat([expanded_BKHW, planes_BPHW], dim=1)

    def pooled(self, map_BCHW: Tensor, mask_Bn: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """max([F, C] * k), the vector that is broadcast (B, K), and the position n that each channel came from.

        An average comes from everywhere; its position is where the channel is largest.

        Args:
            mask_Bn: bool, the positions that are pooled, at least one of an image; by default all.
        """
        return self._pool(map_BCHW, self.final, mask_Bn)

    def before_pooling(self, map_BCHW: Tensor) -> Tensor:
        """What the maximum is taken of, every channel at every position: (B, K, H, W)."""
        last_BnK = further_layers(self._first_layer(map_BCHW), *self.k.rest_parameters())
        return as_map(self.final(last_BnK), map_BCHW)

    def responses(self, map_BCHW: Tensor, mask_Bn: Tensor | None = None) -> Tensor:
        """The pooled last convolution of k without what follows it: (B, K)."""
        return self._pool(map_BCHW, lambda last: last, mask_Bn)[0]

    def _pool(
        self, map_BCHW: Tensor, final: Callable[[Tensor], Tensor], mask_Bn: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        first_BnS, rest = self._first_layer(map_BCHW), self.k.rest_parameters()
        if self.pool == "max" and mask_Bn is None:
            value_BK, position_BK = pooled_max(first_BnS, *rest)
            return final(
                value_BK
            ), position_BK  # it never decreases, so it commutes with the maximum: n times less to do
        last_BnK = further_layers(first_BnS, *rest)
        if mask_Bn is None:
            return final(last_BnK).mean(dim=1), last_BnK.argmax(dim=1)
        absent_Bn1 = ~mask_Bn[..., None]
        value_BK, position_BK = last_BnK.masked_fill(absent_Bn1, -torch.inf).max(dim=1)
        if self.pool == "average":
            return final(last_BnK).masked_fill(absent_Bn1, 0).sum(dim=1) / mask_Bn.sum(dim=1)[:, None], position_BK
        return final(value_BK), position_BK

    @property
    def can_die(self) -> bool:
        """Whether a channel at zero carries nothing and learns nothing: after a plain ReLU."""
        return self.final_relu and not self.negative_slope

    def carries(self, value_BK: Tensor) -> Tensor:
        """Which channels of a broadcast vector carry something, bool (B, K): after a ReLU those above 0, else all."""
        return value_BK > 0 if self.can_die else torch.ones_like(value_BK, dtype=torch.bool)

    def activation_map(self, map_BCHW: Tensor, active_K: Tensor | None = None) -> Tensor:
        """How many channels each position supplied to the broadcast vector (section 5.4): (B, H, W).

        Args:
            active_K: bool, the channels that may count, such as those that vary over a data set; by default all. One
                that does not carry anything about the image never counts.
        """
        value_BK, position_BK = self.pooled(map_BCHW)
        counted_BK = self.carries(value_BK) if active_K is None else self.carries(value_BK) & active_K
        size = map_BCHW.shape[-2:]
        count = torch.zeros(map_BCHW.shape[0], size.numel(), device=map_BCHW.device)
        return count.scatter_add_(1, position_BK, counted_BK.float()).view(-1, *size)

    def extra_repr(self) -> str:
        slope = f", negative_slope={self.negative_slope}" if self.negative_slope else ""
        return f"{super().extra_repr()}, pool={self.pool!r}, final_relu={self.final_relu}{slope}"
