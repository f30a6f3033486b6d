"""The BCN's loop: the maximum over positions of what its 1x1 convolutions make of each, and where it came from.

max_n W_L relu(... relu(W_1 relu(base_n) + b_1) ...) + b_L, the ReLU left to the caller: after the maximum it costs n
times less, and the two commute. `bcn.layers.kernel` does it block by block in the cache; the gradient of a maximum goes
to one position, so the backward pass touches no other.

B images of n positions; K channels of the first convolution, G of the last.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from bcn.layers import kernel


def through(base_BnK: Tensor, weights: list[Tensor], biases: list[Tensor]) -> Tensor:
    """The last convolution before its ReLU, at every position: (B, n, G)."""
    for weight, bias in zip(weights, biases, strict=True):
        base_BnK = F.linear(base_BnK.relu(), weight, bias)
    return base_BnK


def pooled_max(base_BnK: Tensor, weights: list[Tensor], biases: list[Tensor]) -> tuple[Tensor, Tensor]:
    """The maxima (B, G) and their positions."""
    plain = not base_BnK.is_cpu or torch.is_autocast_enabled("cpu") or torch.compiler.is_compiling()
    widths = [base_BnK.shape[2], *(weight.shape[0] for weight in weights)]
    if plain or not weights or not kernel.fits(base_BnK.dtype, widths):
        value, position = through(base_BnK, weights, biases).max(dim=1)
    else:
        value, position = _pooled_max(base_BnK, weights, biases)
    return value, position


@torch.library.custom_op("bcn::pooled_max", mutates_args=())
def _pooled_max(base: Tensor, weights: list[Tensor], biases: list[Tensor]) -> tuple[Tensor, Tensor]:
    return kernel.max_forward(base, weights, biases)


@_pooled_max.register_fake
def _(base: Tensor, weights: list[Tensor], biases: list[Tensor]) -> tuple[Tensor, Tensor]:
    value = base.new_empty(base.shape[0], weights[-1].shape[0])
    return value, torch.empty_like(value, dtype=torch.long)


@torch.library.custom_op("bcn::pooled_max_backward", mutates_args=())
def _pooled_max_backward(
    grad: Tensor, position: Tensor, base: Tensor, weights: list[Tensor], biases: list[Tensor]
) -> list[Tensor]:
    """The gradients of base, the weights and the biases, in this order."""
    return kernel.max_backward(grad, position, base, weights, biases)


@_pooled_max_backward.register_fake
def _(grad: Tensor, position: Tensor, base: Tensor, weights: list[Tensor], biases: list[Tensor]) -> list[Tensor]:
    return [torch.empty_like(x, memory_format=torch.contiguous_format) for x in (base, *weights, *biases)]


def _setup_context(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    base, weights, biases = inputs
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(base, output[1], *weights, *biases)


def _backward(ctx, grad: Tensor, _: Tensor):  # type: ignore[no-untyped-def]
    base, position, *parameters = ctx.saved_tensors
    weights, biases = parameters[: len(parameters) // 2], parameters[len(parameters) // 2 :]
    grads = _pooled_max_backward(grad, position, base, weights, biases)
    return grads[0], grads[1 : 1 + len(weights)], grads[1 + len(weights) :]


_pooled_max.register_autograd(_backward, setup_context=_setup_context)
