"""The loops of `csrc/pooled.c`, called through ctypes: 32-bit floats on CPUs with AVX-512, AVX2 or NEON.

They do in one pass through the cache what torch needs several for: the matrix products, and around them the sums, ReLUs
and masks. Threads share out the questions; in the backward pass, and for the maximum, whole images.

U questions about B images of n objects; K channels of the first layer, G of the last, all in multiples of 64.
"""

import ctypes
import logging
from collections.abc import Sequence
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor

from bcn.errors import BcnError
from bcn.layers.fused.check import pointer
from bcn.layers.fused.threads import Piece, run_shares, share_images, share_questions

log = logging.getLogger(__name__)

WIDTH_MULTIPLE = 64
MAX_LAYERS = 8
"""`LAYERS` of pooled.c"""
MAX_WIDTH = 1 << 16
"""the loops hold a bit for each channel on the stack"""
MAX_OBJECTS = 1 << 30
"""the loops count rows in 32 bits"""
OUT_OF_MEMORY = "no memory for the buffers of the fused loop"


@cache
def load_library(name: str) -> ctypes.CDLL | None:
    """The library that `csrc/name.c` was compiled to; None, with a line in the log, where it cannot be loaded."""
    try:
        return ctypes.CDLL(str(Path(__file__).with_name(f"_{name}{EXTENSION_SUFFIXES[-1]}")))
    except OSError:
        log.warning("the C loops of %s.c were not compiled for this machine: torch runs them, more slowly", name)
        return None


@cache
def vector_width() -> int:
    """Floats in a vector of the instruction set that is used: 16, 8 or 4; 0 where the loop runs in torch."""
    pooled = load_library("pooled")
    return int(pooled.bcn_vector_width()) if pooled else 0


def supports(base: Tensor, weights: list[Tensor], *others: Tensor) -> bool:
    """Whether the loops can run over layers of these widths, on tensors of this type, on this CPU."""
    for width in layer_widths(base, weights):
        if not 0 < width <= MAX_WIDTH or width % WIDTH_MULTIPLE:
            return False
    for tensor in (base, *weights, *others):
        if tensor.dtype != torch.float32 or not tensor.is_cpu:
            return False
    return 0 < len(weights) <= MAX_LAYERS and base.shape[1] <= MAX_OBJECTS and vector_width() > 0


def layer_widths(base: Tensor, weights: Sequence[Tensor]) -> list[int]:
    return [base.shape[2], *(weight.shape[0] for weight in weights)]


def sum_forward(
    base: Tensor, shift: Tensor, owner: Tensor, weights: list[Tensor], biases: list[Tensor], positive: Tensor | None
) -> Tensor:
    """The sums (U, G); sets one bit of `positive`, (U, n, G / 8) bytes, for each last activation that is positive."""
    total = base.new_zeros(len(shift), len(weights[-1]))
    base, shift = base.contiguous(), shift.contiguous()
    weights, biases = _contiguous(weights), _contiguous(biases)

    def run(share: list[Piece]) -> None:
        _call_sum(share, base, shift, weights, biases, total, positive)

    run_shares(run, share_questions(owner, split_images=True))
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
    grad, base, shift = grad.contiguous(), base.contiguous(), shift.contiguous()
    weights, biases = _contiguous(weights), _contiguous(biases)
    grad_base, grad_shift = torch.zeros_like(base), torch.zeros_like(shift)

    def run(share: list[Piece]) -> list[Tensor]:
        sums = _zeros_like(weights, biases)
        grad_weights, grad_biases = sums[: len(weights)], sums[len(weights) :]
        grads = (grad, grad_base, grad_shift)
        _call_sum(share, base, shift, weights, biases, None, positive, grads, grad_weights, grad_biases)
        return sums

    shares = run_shares(run, share_questions(owner, split_images=False)) or [_zeros_like(weights, biases)]
    return [grad_base, grad_shift, *_add_up(shares)]


def max_forward(base: Tensor, weights: list[Tensor], biases: list[Tensor]) -> tuple[Tensor, Tensor]:
    """The maxima (B, G) and their positions."""
    value = base.new_empty(len(base), len(weights[-1]))
    position = torch.empty(value.shape, dtype=torch.long)
    base, weights, biases = base.contiguous(), _contiguous(weights), _contiguous(biases)

    def run(images: range) -> None:
        _call_max(images, base, weights, biases, value, position)

    run_shares(run, share_images(len(base)))
    return value, position


def max_backward(
    grad: Tensor, position: Tensor, base: Tensor, weights: list[Tensor], biases: list[Tensor]
) -> list[Tensor]:
    """The gradients of base, the weights and the biases."""
    grad, base, position = grad.contiguous(), base.contiguous(), position.contiguous()
    weights, biases = _contiguous(weights), _contiguous(biases)
    if position.numel() and not 0 <= position.min() <= position.max() < base.shape[1]:
        raise BcnError(f"positions from {position.min()} to {position.max()}: accepted are 0 to {base.shape[1] - 1}")
    grad_base = torch.zeros_like(base)

    def run(images: range) -> list[Tensor]:
        sums = _zeros_like(weights, biases)
        _call_max(images, base, weights, biases, None, position, (grad, grad_base), sums)
        return sums

    shares = run_shares(run, share_images(len(base))) or [_zeros_like(weights, biases)]
    return [grad_base, *_add_up(shares)]


def _contiguous(tensors: list[Tensor]) -> list[Tensor]:
    return [tensor if tensor.is_contiguous() else tensor.contiguous() for tensor in tensors]


def _zeros_like(weights: list[Tensor], biases: list[Tensor]) -> list[Tensor]:
    return [torch.zeros_like(parameter) for parameter in (*weights, *biases)]


def _add_up(shares: list[list[Tensor]]) -> list[Tensor]:
    """The gradients of the parameters, from those of each thread."""
    return [torch.stack(sums).sum(dim=0) for sums in zip(*shares, strict=True)]


def _call_sum(
    share: list[Piece],
    base: Tensor,
    shift: Tensor,
    weights: list[Tensor],
    biases: list[Tensor],
    total: Tensor | None,
    positive: Tensor | None,
    grads: tuple[Tensor, ...] = (),
    grad_weights: Sequence[Tensor] = (),
    grad_biases: Sequence[Tensor] = (),
) -> None:
    pooled = load_library("pooled")
    assert pooled is not None
    questions, (images, objects, depth), channels = len(shift), base.shape, len(weights[-1])
    grad, grad_base, grad_shift = grads or (None, None, None)
    failed = pooled.bcn_pooled_sum(
        vector_width(),
        ctypes.c_long(len(share)),
        _longs([piece.image for piece in share]),
        _longs([share[0].start, *(piece.stop for piece in share)]),
        *_sizes(base, weights),
        pointer(base, (images, objects, depth)),
        pointer(shift, (questions, depth)),
        *_arrays(base, weights, biases),
        pointer(total, (questions, channels)),
        pointer(positive, (questions, objects, channels // 8), torch.uint8),
        pointer(grad, (questions, channels)),
        pointer(grad_base, (images, objects, depth)),
        pointer(grad_shift, (questions, depth)),
        *_arrays(base, grad_weights, grad_biases),
    )
    if failed:
        raise MemoryError(OUT_OF_MEMORY)


def _call_max(
    image_range: range,
    base: Tensor,
    weights: list[Tensor],
    biases: list[Tensor],
    value: Tensor | None,
    position: Tensor,
    grads: tuple[Tensor, ...] = (),
    sums: Sequence[Tensor] = (),
) -> None:
    pooled = load_library("pooled")
    assert pooled is not None
    (images, objects, depth), channels = base.shape, len(weights[-1])
    grad, grad_base = grads or (None, None)
    failed = pooled.bcn_pooled_max(
        vector_width(),
        ctypes.c_long(image_range.start),
        ctypes.c_long(image_range.stop),
        *_sizes(base, weights),
        pointer(base, (images, objects, depth)),
        *_arrays(base, weights, biases),
        pointer(value, (images, channels)),
        pointer(position, (images, channels), torch.int64),
        pointer(grad, (images, channels)),
        pointer(grad_base, (images, objects, depth)),
        *_arrays(base, sums[: len(weights)], sums[len(weights) :]),
    )
    if failed:
        raise MemoryError(OUT_OF_MEMORY)


def _sizes(base: Tensor, weights: list[Tensor]) -> tuple[ctypes.c_long, int, ctypes.Array[ctypes.c_long]]:
    """Objects, layers and widths, from which every shape follows."""
    assert supports(base, weights)
    return ctypes.c_long(base.shape[1]), len(weights), _longs(layer_widths(base, weights))


def _arrays(
    base: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor]
) -> tuple[ctypes.Array[ctypes.c_void_p], ctypes.Array[ctypes.c_void_p]]:
    """The weights and the biases, or their gradients; in the forward pass there are none of these."""
    if not weights:
        return _NONE, _NONE
    widths = layer_widths(base, weights)
    of_weights = [pointer(x, (wide, narrow)) for x, (narrow, wide) in zip(weights, pairwise(widths), strict=True)]
    of_biases = [pointer(x, (wide,)) for x, wide in zip(biases, widths[1:], strict=True)]
    kind = ctypes.c_void_p * len(weights)
    return kind(*of_weights), kind(*of_biases)


_NONE = (ctypes.c_void_p * 0)()


def _longs(values: list[int]) -> ctypes.Array[ctypes.c_long]:
    return (ctypes.c_long * len(values))(*values)
