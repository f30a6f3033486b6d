"""The BCN's loop: the maximum over positions of what its 1x1 convolutions make of each, and where it came from.

max_n W_L relu(... relu(W_1 relu(base_n) + b_1) ...) + b_L, the ReLU left to the caller: after the maximum it costs n
times less, and the two commute. `bcn.layers.fused.native` does it block by block in the cache; the gradient of a
maximum goes
to one position, so the backward pass touches no other.

B images of n positions; K channels of the first convolution, G of the last.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import Parameter

from bcn.layers.fused import native as kernel


def through(base_BnK: Tensor, weights: list[Tensor], biases: list[Tensor]) -> Tensor:
    """The last convolution before its ReLU, at every position: (B, n, G)."""
    for weight, bias in zip(weights, biases, strict=True):
        base_BnK = F.linear(base_BnK.relu(), weight, bias)
    return base_BnK


def pooled_max(base_BnK: Tensor, weights: list[Tensor], biases: list[Tensor]) -> tuple[Tensor, Tensor]:
    """The maxima (B, G) and their positions."""
    given = (base_BnK, *weights, *biases)
    plain = torch.is_autocast_enabled("cpu") or torch.compiler.is_compiling() or not base_BnK.shape[1]
    plain = plain or not all(type(x) in (Tensor, Parameter) for x in given)  # not one of a mode that only pretends
    widths = [base_BnK.shape[2], *(weight.shape[0] for weight in weights)]
    if plain or not weights or not kernel.fits(given, widths):
        value, position = through(base_BnK, weights, biases).max(dim=1)
    else:
        value, position = _PooledMax.apply(base_BnK, *weights, *biases)  # type: ignore[no-untyped-call]
    return value, position


class _PooledMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, base: Tensor, *parameters: Tensor):  # type: ignore[no-untyped-def]
        value, position = kernel.max_forward(base, *_halves(parameters))
        ctx.mark_non_differentiable(position)
        ctx.save_for_backward(base, position, *parameters)
        return value, position

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor, _: Tensor):  # type: ignore[no-untyped-def]
        base, position, *parameters = ctx.saved_tensors
        return tuple(kernel.max_backward(grad, position, base, *_halves(parameters)))


def _halves(parameters: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """The weights and the biases."""
    return list(parameters[: len(parameters) // 2]), list(parameters[len(parameters) // 2 :])
