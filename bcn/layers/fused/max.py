"""The BCN's reduction: the maximum over positions of what its 1x1 convolutions make of each, and where it came from.

max_n W_L relu(... relu(W_1 relu(base_n) + b_1) ...) + b_L, the ReLU left to the caller: after the maximum it costs n
times less, and the two commute. In C, block by block in the cache. The gradient of a maximum goes to one position, so
the backward pass touches no other.

An `autograd.Function`, where the sum is an operator of torch: torch.compile takes the plain form instead, which holds n
activations of a channel, and not n for each question.

B images of n positions; K channels of the first convolution, G of the last.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from bcn.layers.fused import native
from bcn.layers.fused.check import check_layers
from bcn.layers.fused.dispatch import may_fuse
from bcn.layers.pointwise import further_layers


def pooled_max(base_BnK: Tensor, weights: list[Tensor], biases: list[Tensor]) -> tuple[Tensor, Tensor]:
    """The maxima (B, G) and their positions."""
    fuse = bool(weights) and may_fuse(base_BnK, *weights, *biases, operator=False)
    if fuse:
        check_layers(base_BnK, weights, biases)
    if not fuse or not native.supports(base_BnK, weights, *biases):
        value, position = further_layers(base_BnK, weights, biases).max(dim=1)
    elif torch.is_grad_enabled():
        value, position = _PooledMax.apply(base_BnK, *weights, *biases)  # type: ignore[no-untyped-call]
    else:
        value, position = native.max_forward(base_BnK, weights, biases)
    return value, position


class _PooledMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, base: Tensor, *parameters: Tensor) -> tuple[Tensor, Tensor]:
        value, position = native.max_forward(base, *_split(parameters))
        ctx.mark_non_differentiable(position)
        ctx.save_for_backward(base, position, *parameters)
        return value, position

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor, ...]:
        base, position, *parameters = ctx.saved_tensors
        return tuple(native.max_backward(grad, position, base, *_split(parameters)))


def _split(parameters: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """The weights and the biases."""
    return list(parameters[: len(parameters) // 2]), list(parameters[len(parameters) // 2 :])
