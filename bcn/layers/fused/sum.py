"""The sum over objects of what g makes of each, for every question, without ever holding it all.

sum_n relu(... relu(W_2 relu(base_n + shift_u) + b_2) ...): `base` is what the objects add to g's first layer, `shift`
what a question adds. It goes through buffers that fit the cache and are reused: in C (`native.py`), or in torch
(`chunked.py`) for other floats, CPUs and widths. For the backward pass one bit (in torch one byte) is kept for each
activation of the last layer, and the activations before it are computed again: in multiRN that is the first layer,
which is cheap.

It is an operator of torch, so that torch.compile keeps it whole: traced, it would hold every activation. Without a
gradient and without tracing the operator's function is called directly, because the first call of any operator that is
written in Python imports torch._dynamo and sympy (in `torch._library.custom_ops`): a second and 85 MB.

U questions, about B images of n objects each; K channels of g's first layer, G of its last.
"""

from typing import Any

import torch
from torch import Tensor

from bcn.layers.fused import chunked, native
from bcn.layers.fused.check import check_layers, check_questions
from bcn.layers.fused.dispatch import has_values


def pooled_sum(
    base_BnK: Tensor, shift_UK: Tensor, owner_U: Tensor, weights: list[Tensor], biases: list[Tensor]
) -> Tensor:
    """For each question u, the sum over the objects of image owner[u], on the CPU: (U, G). `owner` never decreases."""
    keep = torch.is_grad_enabled() and any(x.requires_grad for x in (base_BnK, shift_UK, *weights, *biases))
    total: Tensor
    if not keep and has_values(base_BnK, shift_UK, owner_U, *weights, *biases):
        form = _checked_form(base_BnK, shift_UK, owner_U, weights, biases)
        total = form.sum_forward(base_BnK, shift_UK, owner_U, weights, biases, None)
        return total
    total, _ = _pooled_sum(base_BnK, shift_UK, owner_U, weights, biases, keep)
    return total


def _checked_form(base: Tensor, shift: Tensor, owner: Tensor, weights: list[Tensor], biases: list[Tensor]) -> Any:
    """The module that sums, C or torch, for tensors that fit together."""
    check_layers(base, weights, biases)
    check_questions(base, shift, owner)
    return native if native.supports(base, weights, shift, *biases) else chunked


def _sum(
    base: Tensor, shift: Tensor, owner: Tensor, weights: list[Tensor], biases: list[Tensor], keep: bool
) -> tuple[Tensor, Tensor]:
    """The sums, and which of the last layer's activations are positive, empty unless kept."""
    form = _checked_form(base, shift, owner, weights, biases)
    positive = _empty_positive(base, shift, weights, biases, keep)
    return form.sum_forward(base, shift, owner, weights, biases, positive if keep else None), positive


_pooled_sum = torch.library.custom_op("bcn::pooled_sum", _sum, mutates_args=())


@_pooled_sum.register_fake
def _(
    base: Tensor, shift: Tensor, owner: Tensor, weights: list[Tensor], biases: list[Tensor], keep: bool
) -> tuple[Tensor, Tensor]:
    total = base.new_empty(shift.shape[0], weights[-1].shape[0])
    return total, _empty_positive(base, shift, weights, biases, keep)


def _empty_positive(base: Tensor, shift: Tensor, weights: list[Tensor], biases: list[Tensor], keep: bool) -> Tensor:
    """Room for a bit of each last activation in C, a byte in torch."""
    last = weights[-1].shape[0]
    size = last // 8 if native.supports(base, weights, shift, *biases) else last
    return base.new_empty((shift.shape[0], base.shape[1], size) if keep else (0, 0, 0), dtype=torch.uint8)


@torch.library.custom_op("bcn::pooled_sum_backward", mutates_args=())
def _pooled_sum_backward(
    grad: Tensor,
    base: Tensor,
    shift: Tensor,
    owner: Tensor,
    weights: list[Tensor],
    biases: list[Tensor],
    positive: Tensor,
) -> list[Tensor]:
    """The gradients of base, shift, the weights and the biases, in this order."""
    form = _checked_form(base, shift, owner, weights, biases)
    grads: list[Tensor] = form.sum_backward(grad, base, shift, owner, weights, biases, positive)
    return grads


@_pooled_sum_backward.register_fake
def _(
    grad: Tensor,
    base: Tensor,
    shift: Tensor,
    owner: Tensor,
    weights: list[Tensor],
    biases: list[Tensor],
    positive: Tensor,
) -> list[Tensor]:
    return [torch.empty_like(x, memory_format=torch.contiguous_format) for x in (base, shift, *weights, *biases)]


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    base, shift, owner, weights, biases, _ = inputs
    ctx.save_for_backward(base, shift, owner, output[1], *weights, *biases)


def _backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | list[Tensor] | None, ...]:
    base, shift, owner, positive, *parameters = ctx.saved_tensors
    weights, biases = parameters[: len(parameters) // 2], parameters[len(parameters) // 2 :]
    grads = _pooled_sum_backward(grad, base, shift, owner, weights, biases, positive)
    return grads[0], grads[1], None, grads[2 : 2 + len(weights)], grads[2 + len(weights) :], None


_pooled_sum.register_autograd(_backward, setup_context=_setup_context)
