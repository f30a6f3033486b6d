"""The hot loop: the sum over objects of what g makes of each, for every question, without ever holding it all.

sum_n relu(... relu(W_2 relu(base_n + shift_u) + b_2) ...): `base` is what the objects give to g's first layer, `shift`
what a question gives. Computed in chunks that stay in the cache, through buffers that are reused. For the backward pass
one bit is kept for each activation of the last layer, and those before it are computed again: in multiRN that is the
first, which is cheap. `bcn.layers.fused.native` does it in C; what that cannot do (other floats, other CPUs, odd
widths) is
done here in torch, with one byte instead of one bit.

U questions, about B images of n objects each; K channels of g's first layer, G of its last.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from bcn.layers.fused import native as kernel

CHUNK = 512
"""Rows of a chunk: two buffers of 512 x 256 floats are 1 MB, the second-level cache of a core."""


def pooled_sum(
    base_BnK: Tensor, shift_UK: Tensor, owner_U: Tensor, weights: list[Tensor], biases: list[Tensor]
) -> Tensor:
    """For each question u, the sum over the objects of image owner[u], on the CPU: (U, G). `owner` never decreases."""
    keep = torch.is_grad_enabled() and any(x.requires_grad for x in (base_BnK, shift_UK, *weights, *biases))
    total: Tensor
    total, _ = _pooled_sum(base_BnK, shift_UK, owner_U, weights, biases, keep)
    return total


def literal(base_BnK: Tensor, shift_BQK: Tensor, weights: list[Tensor], biases: list[Tensor]) -> Tensor:
    """What is summed, before its last ReLU, in plain operations, for Q questions about each image: (B, Q, n, G)."""
    hidden = base_BnK[:, None] + shift_BQK[:, :, None]
    for weight, bias in zip(weights, biases, strict=True):
        hidden = F.linear(F.relu(hidden), weight, bias)
    return hidden


def literal_sum(base_BnK: Tensor, shift_BQK: Tensor, weights: list[Tensor], biases: list[Tensor]) -> Tensor:
    """The same sum, holding every activation, for Q questions about each image: (B, Q, G)."""
    return F.relu(literal(base_BnK, shift_BQK, weights, biases)).sum(dim=2)


class _Chunk(NamedTuple):
    """Some objects of some questions: of one image, or all objects of the questions of several images."""

    questions: slice
    objects: slice
    image: int | None


def _chunks(owner: list[int], objects: int) -> Iterator[_Chunk]:
    """Cut the work at the images' borders where an image fills a chunk, and else put whole images together."""
    at_once = max(1, CHUNK // objects)
    borders = [0, *(u for u in range(1, len(owner)) if owner[u] != owner[u - 1]), len(owner)]
    start = 0
    for border, following in pairwise([*borders[1:], borders[-1] + at_once + 1]):
        if following - start <= at_once:
            continue
        pieces = -(-(border - start) // at_once)
        for piece in range(pieces):
            first, last = (start + (border - start) * k // pieces for k in (piece, piece + 1))
            image = owner[first] if owner[first] == owner[last - 1] else None
            for n in range(0, objects, CHUNK):
                yield _Chunk(slice(first, last), slice(n, min(n + CHUNK, objects)), image)
        start = border


class _Work:
    """One call's buffers, and the steps that forward and backward share."""

    def __init__(
        self, base_BnK: Tensor, shift_UK: Tensor, owner_U: Tensor, weights: list[Tensor], biases: list[Tensor]
    ):
        self.base, self.shift, self.owner = base_BnK.contiguous(), shift_UK.contiguous(), owner_U
        self.weights, self.biases = weights, biases
        self.chunks = list(_chunks(owner_U.tolist(), base_BnK.shape[1]))
        rows = max(
            ((c.questions.stop - c.questions.start) * (c.objects.stop - c.objects.start) for c in self.chunks),
            default=0,
        )
        self.widths = _widths(base_BnK, weights)
        self.hidden = [base_BnK.new_empty(rows, width) for width in self.widths]

    def shape(self, chunk: _Chunk) -> tuple[int, int]:
        return chunk.questions.stop - chunk.questions.start, chunk.objects.stop - chunk.objects.start

    def base_of(self, chunk: _Chunk) -> Tensor:
        """(1 or u, n, K)"""
        index = self.owner[chunk.questions] if chunk.image is None else slice(chunk.image, chunk.image + 1)
        return self.base[index, chunk.objects]

    def first(self, chunk: _Chunk) -> Tensor:
        """relu(base + shift) as rows."""
        u, n = self.shape(chunk)
        hidden = self.hidden[0][: u * n]
        torch.add(self.base_of(chunk), self.shift[chunk.questions, None], out=hidden.view(u, n, -1))
        return hidden.relu_()

    def through(self, chunk: _Chunk, layers: int) -> list[Tensor]:
        """The activations of the first layer and of this many further layers."""
        hidden = [self.first(chunk)]
        for layer in range(layers):
            out = self.hidden[layer + 1][: len(hidden[0])]
            torch.mm(hidden[-1], self.weights[layer].t(), out=out)
            hidden.append(out.add_(self.biases[layer]).relu_())
        return hidden


@torch.library.custom_op("bcn::pooled_sum", mutates_args=())
def _pooled_sum(
    base: Tensor, shift: Tensor, owner: Tensor, weights: list[Tensor], biases: list[Tensor], keep: bool
) -> tuple[Tensor, Tensor]:
    """The sums, and which of the last layer's activations are positive, empty unless kept."""
    positive = base.new_empty(_kept(base, shift, weights, biases, keep), dtype=torch.uint8)
    if kernel.fits([base, shift, *weights, *biases], _widths(base, weights)):
        return kernel.sum_forward(base, shift, owner, weights, biases, positive if keep else None), positive
    work = _Work(base, shift, owner, weights, biases)
    total = base.new_zeros(len(shift), work.widths[-1])
    for chunk in work.chunks:
        last = work.through(chunk, len(weights))[-1].view(*work.shape(chunk), -1)
        total[chunk.questions] += last.sum(dim=1)
        if keep:
            positive[chunk.questions, chunk.objects].view(torch.bool).copy_(last)
    return total, positive


@_pooled_sum.register_fake
def _(
    base: Tensor, shift: Tensor, owner: Tensor, weights: list[Tensor], biases: list[Tensor], keep: bool
) -> tuple[Tensor, Tensor]:
    kept = base.new_empty(_kept(base, shift, weights, biases, keep), dtype=torch.uint8)
    return base.new_empty(shift.shape[0], weights[-1].shape[0]), kept


def _widths(base: Tensor, weights: list[Tensor]) -> list[int]:
    return [base.shape[2], *(weight.shape[0] for weight in weights)]


def _kept(base: Tensor, shift: Tensor, weights: list[Tensor], biases: list[Tensor], keep: bool) -> tuple[int, int, int]:
    """The shape of what is kept: bits in C, bytes in torch."""
    widths = _widths(base, weights)
    bytes_ = widths[-1] // 8 if kernel.fits([base, shift, *weights, *biases], widths) else widths[-1]
    return (shift.shape[0], base.shape[1], bytes_) if keep else (0, 0, 0)


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
    if kernel.fits([base, shift, *weights, *biases], _widths(base, weights)):
        return kernel.sum_backward(grad, base, shift, owner, weights, biases, positive)
    work = _Work(base, shift, owner, weights, biases)
    grad = grad.contiguous()
    grads = [torch.zeros_like(x, memory_format=torch.contiguous_format) for x in (base, shift, *weights, *biases)]
    grad_base, grad_shift = grads[:2]
    grad_weights, grad_biases = grads[2 : 2 + len(weights)], grads[2 + len(weights) :]
    buffers = [torch.empty_like(hidden) for hidden in work.hidden]
    for chunk in work.chunks:
        u, n = work.shape(chunk)
        hidden = work.through(chunk, len(weights) - 1)
        flowing = [buffer[: u * n] for buffer in buffers]
        last = flowing[-1].view(u, n, -1)
        # 1 where the last layer's activation is positive, 0 elsewhere, times the gradient of the question's sum.
        last.copy_(positive[chunk.questions, chunk.objects]).mul_(grad[chunk.questions, None])
        for layer in reversed(range(len(weights))):
            grad_weights[layer].addmm_(flowing[layer + 1].t(), hidden[layer])
            grad_biases[layer] += flowing[layer + 1].sum(dim=0)
            torch.mm(flowing[layer + 1], weights[layer], out=flowing[layer])
            torch.ops.aten.threshold_backward.grad_input(flowing[layer], hidden[layer], 0, grad_input=flowing[layer])
        first = flowing[0].view(u, n, -1)
        grad_shift[chunk.questions] += first.sum(dim=1)
        if chunk.image is None:
            grad_base.index_add_(0, owner[chunk.questions], first)
        else:
            grad_base[chunk.image, chunk.objects] += first.sum(dim=0)
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


def _setup_context(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    base, shift, owner, weights, biases, _ = inputs
    ctx.save_for_backward(base, shift, owner, output[1], *weights, *biases)


def _backward(ctx, grad: Tensor, _: Tensor):  # type: ignore[no-untyped-def]
    base, shift, owner, positive, *parameters = ctx.saved_tensors
    weights, biases = parameters[: len(parameters) // 2], parameters[len(parameters) // 2 :]
    grads = _pooled_sum_backward(grad, base, shift, owner, weights, biases, positive)
    return grads[0], grads[1], None, grads[2 : 2 + len(weights)], grads[2 + len(weights) :], None


_pooled_sum.register_autograd(_backward, setup_context=_setup_context)
