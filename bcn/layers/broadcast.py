"""The Broadcasting Convolutional Network (section 2 of the paper).

B images, n' channels of the input map of H x W = n positions, K channels of the broadcast vector, P coordinate planes.
"""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bcn.errors import BcnError
from bcn.layers.coordinates import check_planes, coordinate_planes
from bcn.layers.fused.max import pooled_max, through
from bcn.layers.pointwise import Pointwise, as_map, check_map, check_sizes, rows


class SkipConv(nn.Module):
    """[F, C] * k: 1x1 convolutions with ReLU over a map and its coordinate planes (the skip-connection of table 1).

    >>> SkipConv(24, (64, 64, 128), planes="xyr")(torch.rand(2, 24, 8, 8)).shape
    torch.Size([2, 128, 8, 8])
    """

    def __init__(
        self, channels: int, sizes: Sequence[int] = (128, 128, 256), *, planes: str = "", origin: str = "centre"
    ) -> None:
        super().__init__()
        check_planes(planes, origin)
        check_sizes(channels, sizes)
        self.planes, self.origin = planes, origin
        self.out_channels = sizes[-1]
        self.k = Pointwise((channels, len(planes)), sizes)

    def planes_like(self, map_BCHW: Tensor) -> Tensor:
        """C, the coordinate planes of a map: (P, H, W)."""
        check_map(map_BCHW, self.k.first.channels[0])
        height, width = map_BCHW.shape[-2:]
        return coordinate_planes(height, width, self.planes, self.origin, dtype=map_BCHW.dtype, device=map_BCHW.device)

    def first(self, map_BCHW: Tensor) -> Tensor:
        """The first convolution of [F, C] * k before its ReLU: rows (B, n, S)."""
        return self.k.first.forward_rows(rows(map_BCHW), rows(self.planes_like(map_BCHW)))

    def rest(self) -> tuple[list[Tensor], list[Tensor]]:
        """The weights and biases of the further convolutions."""
        biases = [layer.bias for layer in self.k.rest if layer.bias is not None]
        return [layer.weight.flatten(1) for layer in self.k.rest], biases

    def forward(self, map_BCHW: Tensor) -> Tensor:
        return as_map(through(self.first(map_BCHW), *self.rest()).relu_(), map_BCHW)

    def extra_repr(self) -> str:
        return f"planes={self.planes!r}, origin={self.origin!r}"


def _max(first_BnS: Tensor, weights: list[Tensor], biases: list[Tensor]) -> tuple[Tensor, Tensor]:
    value_BK, position_BK = pooled_max(first_BnS, weights, biases)
    return value_BK.relu(), position_BK


def _average(first_BnS: Tensor, weights: list[Tensor], biases: list[Tensor]) -> tuple[Tensor, Tensor]:
    """The mean comes from everywhere; its position is where the channel is strongest."""
    last_BnK = through(first_BnS, weights, biases)
    return F.relu(last_BnK).mean(dim=1), last_BnK.argmax(dim=1)


POOLS: dict[str, Callable[[Tensor, list[Tensor], list[Tensor]], tuple[Tensor, Tensor]]] = {
    "max": _max,
    "average": _average,
}


class BroadcastConv(SkipConv):
    """Equation 1: BCN(F) = [E(max([F, C] * k), h, w), C].

    >>> bcn = BroadcastConv(24, (64, 64, 128))
    >>> bcn(torch.rand(2, 24, 8, 6)).shape  # 128 broadcast channels and 3 planes
    torch.Size([2, 131, 8, 6])
    """

    def __init__(
        self,
        channels: int,
        sizes: Sequence[int] = (128, 128, 256),
        *,
        planes: str = "xyr",
        origin: str = "centre",
        pool: str = "max",
    ) -> None:
        super().__init__(channels, sizes, planes=planes, origin=origin)
        if pool not in POOLS:
            raise BcnError(f"pool {pool!r} is unknown: accepted are {' and '.join(map(repr, POOLS))}")
        self.pool = pool

    def pooled(self, map_BCHW: Tensor) -> tuple[Tensor, Tensor]:
        """The vector that is broadcast, (B, K), and the position, counted row by row, that each channel came from."""
        return POOLS[self.pool](self.first(map_BCHW), *self.rest())

    def forward(self, map_BCHW: Tensor) -> Tensor:
        (vector_BK, _), planes = self.pooled(map_BCHW), self.planes_like(map_BCHW)
        size = map_BCHW.shape[-2:]
        everywhere = vector_BK[:, :, None, None].expand(-1, -1, *size)  # E, the expansion
        return torch.cat([everywhere, planes.expand(map_BCHW.shape[0], -1, -1, -1)], dim=1)

    def activation_map(self, map_BCHW: Tensor) -> Tensor:
        """How many channels each position supplied to the broadcast vector (section 5.4): (B, H, W).

        A channel whose maximum is zero carries nothing and is not counted.
        """
        value_BK, position_BK = self.pooled(map_BCHW)
        size = map_BCHW.shape[-2:]
        count = torch.zeros(map_BCHW.shape[0], size.numel(), device=map_BCHW.device)
        return count.scatter_add_(1, position_BK, (value_BK > 0).float()).view(-1, *size)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, pool={self.pool!r}"
