"""The hot loops of `bcn.layers.fused.sum` and `pooled_max` in C, for 32-bit floats on CPUs with AVX-512 or AVX2.

It does in one pass through the cache what torch needs several for: the matrix products, and around them the sums, ReLUs
and masks. Threads share out the questions; in the backward pass, whole images.

U questions about B images of n objects; K channels of g's first layer, G of its last, all in multiples of 64.
"""

import ctypes
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from itertools import groupby, pairwise
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

COLUMNS = 64
LAYERS = 8
NO_MEMORY = "no memory for the buffers of the hot loop"

Result = TypeVar("Result")
Share = TypeVar("Share")
Piece = tuple[int, int, int]
"""an image, the first of its questions, and the one after the last"""


@cache
def library(name: str) -> ctypes.CDLL | None:
    """A loop that was compiled; None where it could not be."""
    paths = (Path(__file__).with_name(f"_{name}{suffix}") for suffix in EXTENSION_SUFFIXES)
    return next((ctypes.CDLL(str(path)) for path in paths if path.exists()), None)


@cache
def vector_width() -> int:
    """Floats in a vector of the instruction set that is used: 16 or 8; 0 where the loop runs in torch."""
    pooled = library("pooled")
    return int(pooled.bcn_vector_width()) if pooled else 0


def fits(tensors: Sequence[Tensor], widths: Sequence[int]) -> bool:
    """Whether the loop over layers of these widths can run here, on these tensors."""
    suits = len(widths) <= LAYERS + 1 and all(width % COLUMNS == 0 for width in widths)
    suits = suits and all(x.dtype == torch.float32 and x.is_cpu for x in tensors)
    return suits and vector_width() > 0


def sum_forward(
    base: Tensor, shift: Tensor, owner: Tensor, weights: list[Tensor], biases: list[Tensor], positive: Tensor | None
) -> Tensor:
    """The sums (U, G); sets one bit of `positive`, (U, n, G / 8) bytes, for each last activation that is positive."""
    total = base.new_zeros(len(shift), len(weights[-1]))
    base, shift = base.contiguous(), shift.contiguous()
    weights, biases = [w.contiguous() for w in weights], [b.contiguous() for b in biases]

    def run(share: list[Piece]) -> None:
        _call_sum(share, base, shift, weights, biases, total, positive)

    share_out(run, _shares(owner, split=True))
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
    weights, biases = [w.contiguous() for w in weights], [b.contiguous() for b in biases]
    grad_base, grad_shift = torch.zeros_like(base), torch.zeros_like(shift)

    def run(share: list[Piece]) -> list[Tensor]:
        sums = [torch.zeros_like(parameter) for parameter in (*weights, *biases)]
        grad_weights, grad_biases = sums[: len(weights)], sums[len(weights) :]
        grads = (grad, grad_base, grad_shift)
        _call_sum(share, base, shift, weights, biases, None, positive, grads, grad_weights, grad_biases)
        return sums

    shares = share_out(run, _shares(owner, split=False)) or [[torch.zeros_like(x) for x in (*weights, *biases)]]
    return [grad_base, grad_shift, *(torch.stack(sums).sum(dim=0) for sums in zip(*shares, strict=True))]


def _shares(owner: Tensor, *, split: bool) -> list[list[Piece]]:
    """For each thread, the pieces of work that it does. An image's questions stay together unless they may be split."""
    threads, images = torch.get_num_threads(), owner.tolist()
    pieces, first = [], 0
    for image, run in groupby(images):
        last = first + len(list(run))
        steps = threads if split else 1
        cuts = [first + (last - first) * step // steps for step in range(steps + 1)]
        pieces += [(image, *cut) for cut in pairwise(cuts)]
        first = last
    shares: list[list[Piece]] = [[] for _ in range(threads)]
    for piece in pieces:
        shares[threads * piece[1] // len(images)].append(piece)
    return [share for share in shares if share]


def share_out(run: Callable[[Share], Result], shares: list[Share]) -> list[Result]:
    if len(shares) <= 1:
        return [run(share) for share in shares]
    with ThreadPoolExecutor(len(shares)) as pool:
        return list(pool.map(run, shares))


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
    pooled = library("pooled")
    assert pooled is not None
    failed = pooled.bcn_pooled_sum(
        vector_width(),
        ctypes.c_long(len(share)),
        _longs([image for image, _, _ in share]),
        _longs([share[0][1], *(last for _, _, last in share)]),
        *_sizes(base, weights),
        *pointers(base, shift),
        *_arrays(weights, biases),
        *pointers(total, positive, *(grads or (None, None, None))),
        *_arrays(grad_weights, grad_biases),
    )
    if failed:
        raise MemoryError(NO_MEMORY)


def max_forward(base: Tensor, weights: list[Tensor], biases: list[Tensor]) -> tuple[Tensor, Tensor]:
    """The maxima (B, G) and their positions."""
    value = base.new_empty(len(base), len(weights[-1]))
    position = torch.empty_like(value, dtype=torch.long)
    base, weights, biases = base.contiguous(), [w.contiguous() for w in weights], [b.contiguous() for b in biases]

    def run(images: range) -> None:
        _call_max(images, base, weights, biases, value, position)

    share_out(run, ranges(len(base)))
    return value, position


def max_backward(
    grad: Tensor, position: Tensor, base: Tensor, weights: list[Tensor], biases: list[Tensor]
) -> list[Tensor]:
    """The gradients of base, the weights and the biases."""
    grad, base, position = grad.contiguous(), base.contiguous(), position.contiguous()
    weights, biases = [w.contiguous() for w in weights], [b.contiguous() for b in biases]
    grad_base = torch.zeros_like(base)

    def run(images: range) -> list[Tensor]:
        sums = [torch.zeros_like(parameter) for parameter in (*weights, *biases)]
        _call_max(images, base, weights, biases, None, position, (grad, grad_base), sums)
        return sums

    shares = share_out(run, ranges(len(base))) or [[torch.zeros_like(x) for x in (*weights, *biases)]]
    return [grad_base, *(torch.stack(sums).sum(dim=0) for sums in zip(*shares, strict=True))]


def ranges(images: int) -> list[range]:
    threads = torch.get_num_threads()
    cuts = [images * step // threads for step in range(threads + 1)]
    return [range(*cut) for cut in pairwise(cuts) if cut[0] < cut[1]]


def _call_max(
    images: range,
    base: Tensor,
    weights: list[Tensor],
    biases: list[Tensor],
    value: Tensor | None,
    position: Tensor,
    grads: tuple[Tensor, ...] = (),
    sums: Sequence[Tensor] = (),
) -> None:
    pooled = library("pooled")
    assert pooled is not None
    failed = pooled.bcn_pooled_max(
        vector_width(),
        ctypes.c_long(images.start),
        ctypes.c_long(images.stop),
        *_sizes(base, weights),
        *pointers(base),
        *_arrays(weights, biases),
        *pointers(value, position, *(grads or (None, None))),
        *_arrays(sums[: len(weights)], sums[len(weights) :]),
    )
    if failed:
        raise MemoryError(NO_MEMORY)


def _sizes(base: Tensor, weights: list[Tensor]) -> tuple[ctypes.c_long, int, ctypes.Array[ctypes.c_long]]:
    """Objects, layers and widths."""
    widths = [base.shape[2], *(len(weight) for weight in weights)]
    return ctypes.c_long(base.shape[1]), len(weights), _longs(widths)


def _arrays(*lists: Sequence[Tensor]) -> list[ctypes.Array[ctypes.c_void_p]]:
    return [(ctypes.c_void_p * len(tensors))(*pointers(*tensors)) for tensors in lists]


def _longs(values: list[int]) -> ctypes.Array[ctypes.c_long]:
    return (ctypes.c_long * len(values))(*values)


def pointers(*tensors: Tensor | None) -> list[ctypes.c_void_p]:
    return [ctypes.c_void_p(tensor.data_ptr() if tensor is not None else None) for tensor in tensors]
