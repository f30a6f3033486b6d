"""A 1x1 convolution over a concatenation that is never built.

W [F, expand(v), C] + b  =  W_F F + W_C C + (W_v v + b): the map's part is computed for every position, the planes' part
once for all images, the vectors' part once per image. The parameters are those of a `Conv2d` over the concatenation.

B images, S channels of a source, K channels of the result, n = H x W positions.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import cast

import torch.nn.functional as F
from torch import Tensor, nn

from bcn.errors import BcnError
from bcn.layers.rows import as_map, rows

NO_BIAS = "a 1x1 convolution has no bias: accepted is one with a bias; to do without, set it to zeros"


class ConcatConv1x1(nn.Conv2d):
    """A 1x1 convolution over the concatenation of sources with these channels.

    >>> import torch
    >>> conv = ConcatConv1x1((24, 256, 3), 64)
    >>> conv(torch.rand(2, 24, 8, 8), torch.rand(2, 256), torch.rand(3, 8, 8)).shape
    torch.Size([2, 64, 8, 8])
    """

    def __init__(self, channels: Sequence[int], out_channels: int) -> None:
        super().__init__(sum(channels), out_channels, 1)
        self.channels = tuple(channels)
        self.starts = tuple(accumulate(channels[:-1], initial=0))

    def parts(self) -> tuple[Tensor, ...]:
        """The weight of each source, (K, S)."""
        parts: tuple[Tensor, ...] = self.weight.flatten(1).split(self.channels, dim=1)
        return parts

    def part(self, source: int) -> Tensor:
        """The weight of one source, (K, S)."""
        return self.weight.flatten(1).narrow(1, self.starts[source], self.channels[source])

    def forward(self, *sources: Tensor) -> Tensor:
        """Sources are maps (B, S, H, W), of which there is at least one, planes (S, H, W) or vectors (B, S)."""
        like = next(source for source in sources if source.dim() == 4)
        return as_map(self.forward_rows(*(source if source.dim() == 2 else rows(source) for source in sources)), like)

    def forward_rows(self, *sources: Tensor | None) -> Tensor:
        """The same over rows: maps (B, n, S), planes (1, n, S), vectors (B, S); gives (B, n, K).

        The part of a source that is None is left out, for a caller that adds it later.
        """
        everywhere, constant = [], self.bias
        for index, source in enumerate(sources):
            if source is None:
                continue
            if source.dim() == 2:
                constant = F.linear(source, self.part(index), constant)
            elif source.shape[2]:
                everywhere.append(F.linear(source, self.part(index)))
        if constant is None:
            raise BcnError(NO_BIAS)
        # The terms with fewer rows first, so that the large one is gone through once.
        total = constant[:, None] if constant.dim() == 2 else constant
        for term in sorted(everywhere, key=lambda term: term.shape[0]):
            total = term + total
        return total


class Pointwise(nn.ModuleList):
    """1x1 convolutions with these numbers of channels one after the other, the first over a concatenation."""

    def __init__(self, channels: Sequence[int], sizes: Sequence[int]) -> None:
        _check_sizes(channels[0], sizes)
        super().__init__([ConcatConv1x1(channels, sizes[0])])
        self.extend(ConcatConv1x1((narrow,), wide) for narrow, wide in pairwise(sizes))

    @property
    def first(self) -> ConcatConv1x1:
        return cast(ConcatConv1x1, self[0])

    @property
    def rest(self) -> list[ConcatConv1x1]:
        return [cast(ConcatConv1x1, layer) for layer in list(self)[1:]]

    def rest_parameters(self) -> tuple[list[Tensor], list[Tensor]]:
        """Weights (K, S) and biases (K,) of the convolutions after the first."""
        rest = self.rest
        biases = [layer.bias for layer in rest if layer.bias is not None]
        if len(biases) < len(rest):
            raise BcnError(NO_BIAS)
        return [layer.weight.flatten(1) for layer in rest], biases


def further_layers(hidden: Tensor, weights: list[Tensor], biases: list[Tensor]) -> Tensor:
    """From the first layer before its ReLU to the last layer before its ReLU; channels are the last dimension."""
    for weight, bias in zip(weights, biases, strict=True):
        hidden = F.linear(hidden.relu(), weight, bias)
    return hidden


def _check_sizes(channels: int, sizes: Sequence[int]) -> None:
    whole = isinstance(sizes, Sequence) and all(type(size) is int and size > 0 for size in (channels, *sizes))
    if not whole or not sizes:
        raise BcnError(
            f"channels={channels!r}, sizes={sizes!r}: accepted are whole numbers above 0, and at least one size, the "
            "channels of each 1x1 convolution, such as (64, 64)"
        )
