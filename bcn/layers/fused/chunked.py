"""The sum of `bcn.layers.fused.sum` in torch, chunk by chunk through buffers that stay in the cache.

U questions, about B images of n objects each; K channels of g's first layer, G of its last. A chunk has u questions.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from bcn.layers.fused.native import layer_widths

CHUNK_ROWS = 512
"""two buffers of 512 x 256 floats are 1 MB, the second-level cache of a core"""


def sum_forward(
    base: Tensor, shift: Tensor, owner: Tensor, weights: list[Tensor], biases: list[Tensor], positive: Tensor | None
) -> Tensor:
    """The sums (U, G); sets `positive`, (U, n, G) bytes, to 1 for each last activation that is positive."""
    buffers = _Buffers(base, shift, owner, weights, biases)
    total = base.new_zeros(len(shift), buffers.widths[-1])
    for chunk in buffers.chunks:
        last = buffers.activations(chunk, len(weights))[-1].view(*chunk.shape, -1)
        total[chunk.questions] += last.sum(dim=1)
        if positive is not None:
            positive[chunk.questions, chunk.objects].view(torch.bool).copy_(last)
    return total


def sum_backward(
    grad: Tensor,
    base: Tensor,
    shift: Tensor,
    owner: Tensor,
    weights: list[Tensor],
    biases: list[Tensor],
    positive: Tensor,
) -> list[Tensor]:
    """The gradients of base, shift, the weights and the biases."""
    buffers = _Buffers(base, shift, owner, weights, biases)
    grad = grad.contiguous()
    grads = [torch.zeros_like(x, memory_format=torch.contiguous_format) for x in (base, shift, *weights, *biases)]
    grad_base, grad_shift = grads[:2]
    grad_weights, grad_biases = grads[2 : 2 + len(weights)], grads[2 + len(weights) :]
    grad_buffers = [torch.empty_like(hidden) for hidden in buffers.hidden]
    for chunk in buffers.chunks:
        u, n = chunk.shape
        hidden = buffers.activations(chunk, len(weights) - 1)
        grad_hidden = [buffer[: u * n] for buffer in grad_buffers]
        last = grad_hidden[-1].view(u, n, -1)
        # 1 where the last layer's activation is positive, 0 elsewhere, times the gradient of the question's sum.
        last.copy_(positive[chunk.questions, chunk.objects]).mul_(grad[chunk.questions, None])
        for layer in reversed(range(len(weights))):
            grad_weights[layer].addmm_(grad_hidden[layer + 1].t(), hidden[layer])
            grad_biases[layer] += grad_hidden[layer + 1].sum(dim=0)
            torch.mm(grad_hidden[layer + 1], weights[layer], out=grad_hidden[layer])
            torch.ops.aten.threshold_backward.grad_input(
                grad_hidden[layer], hidden[layer], 0, grad_input=grad_hidden[layer]
            )
        first = grad_hidden[0].view(u, n, -1)
        grad_shift[chunk.questions] += first.sum(dim=1)
        if chunk.image is None:
            grad_base.index_add_(0, owner[chunk.questions], first)
        else:
            grad_base[chunk.image, chunk.objects] += first.sum(dim=0)
    return grads


class _Chunk(NamedTuple):
    """Some objects of some questions: of one image, or all objects of the questions of several images."""

    questions: slice
    objects: slice
    image: int | None

    @property
    def shape(self) -> tuple[int, int]:
        return self.questions.stop - self.questions.start, self.objects.stop - self.objects.start


def _chunks(owner: list[int], objects: int) -> Iterator[_Chunk]:
    """Cut the work at the images' borders where an image fills a chunk, and else put whole images together."""
    at_once = max(1, CHUNK_ROWS // objects)
    borders = [0, *(u for u in range(1, len(owner)) if owner[u] != owner[u - 1]), len(owner)]
    start = 0
    for border, following in pairwise([*borders[1:], borders[-1] + at_once + 1]):
        if following - start <= at_once:
            continue
        pieces = -(-(border - start) // at_once)
        for piece in range(pieces):
            first, last = (start + (border - start) * k // pieces for k in (piece, piece + 1))
            image = owner[first] if owner[first] == owner[last - 1] else None
            for n in range(0, objects, CHUNK_ROWS):
                yield _Chunk(slice(first, last), slice(n, min(n + CHUNK_ROWS, objects)), image)
        start = border


class _Buffers:
    """The inputs of one call, and a buffer for each layer that all chunks use in turn."""

    def __init__(
        self, base_BnK: Tensor, shift_UK: Tensor, owner_U: Tensor, weights: list[Tensor], biases: list[Tensor]
    ) -> None:
        self.base, self.shift, self.owner = base_BnK.contiguous(), shift_UK.contiguous(), owner_U
        self.weights, self.biases = weights, biases
        self.chunks = list(_chunks(owner_U.tolist(), base_BnK.shape[1]))
        rows = max((chunk.shape[0] * chunk.shape[1] for chunk in self.chunks), default=0)
        self.widths = layer_widths(base_BnK, weights)
        self.hidden = [base_BnK.new_empty(rows, width) for width in self.widths]

    def activations(self, chunk: _Chunk, layers: int) -> list[Tensor]:
        """The activations of the first layer and of this many further layers, as rows (u n, channels)."""
        hidden = [self._first_layer(chunk)]
        for layer in range(layers):
            out = self.hidden[layer + 1][: len(hidden[0])]
            torch.mm(hidden[-1], self.weights[layer].t(), out=out)
            hidden.append(out.add_(self.biases[layer]).relu_())
        return hidden

    def _first_layer(self, chunk: _Chunk) -> Tensor:
        """relu(base + shift)."""
        u, n = chunk.shape
        hidden = self.hidden[0][: u * n]
        image = self.owner[chunk.questions] if chunk.image is None else slice(chunk.image, chunk.image + 1)
        torch.add(self.base[image, chunk.objects], self.shift[chunk.questions, None], out=hidden.view(u, n, -1))
        return hidden.relu_()
