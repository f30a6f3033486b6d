"""The hot loop of `bcn.layers.pooled` in C, for 32-bit floats on CPUs with AVX-512 or AVX2.

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

Result = TypeVar("Result")
Piece = tuple[int, int, int]
"""an image, the first of its questions, and the one after the last"""


@cache
def _library() -> ctypes.CDLL | None:
    paths = (Path(__file__).with_name(f"_pooled{suffix}") for suffix in EXTENSION_SUFFIXES)
    return next((ctypes.CDLL(str(path)) for path in paths if path.exists()), None)


@cache
def vector_width() -> int:
    """Floats in a vector of the instruction set that is used: 16 or 8; 0 where the loop runs in torch."""
    library = _library()
    return int(library.bcn_vector_width()) if library else 0


def fits(dtype: torch.dtype, widths: Sequence[int]) -> bool:
    """Whether the loop over layers of these widths can run here."""
    suits = dtype == torch.float32 and len(widths) <= LAYERS + 1 and all(width % COLUMNS == 0 for width in widths)
    return suits and vector_width() > 0


def forward(
    base: Tensor, shift: Tensor, owner: Tensor, weights: list[Tensor], biases: list[Tensor], positive: Tensor | None
) -> Tensor:
    """The sums (U, G); sets one bit of `positive`, (U, n, G / 8) bytes, for each last activation that is positive."""
    total = base.new_zeros(len(shift), len(weights[-1]))
    base, shift = base.contiguous(), shift.contiguous()
    weights, biases = [w.contiguous() for w in weights], [b.contiguous() for b in biases]

    def run(share: list[Piece]) -> None:
        _call(share, base, shift, weights, biases, total, positive)

    _share_out(run, _shares(owner, split=True))
    return total


def backward(
    grad: Tensor,
    base: Tensor,
    shift: Tensor,
    owner: Tensor,
    weights: list[Tensor],
    biases: list[Tensor],
    positive: Tensor | None,
) -> list[Tensor]:
    """The gradients of base, shift, the weights and the biases; without `positive` everything is recomputed."""
    grad, base, shift = grad.contiguous(), base.contiguous(), shift.contiguous()
    weights, biases = [w.contiguous() for w in weights], [b.contiguous() for b in biases]
    grad_base, grad_shift = torch.zeros_like(base), torch.zeros_like(shift)

    def run(share: list[Piece]) -> list[Tensor]:
        sums = [torch.zeros_like(parameter) for parameter in (*weights, *biases)]
        grad_weights, grad_biases = sums[: len(weights)], sums[len(weights) :]
        grads = (grad, grad_base, grad_shift)
        _call(share, base, shift, weights, biases, None, positive, grads, grad_weights, grad_biases)
        return sums

    shares = _share_out(run, _shares(owner, split=False)) or [[torch.zeros_like(x) for x in (*weights, *biases)]]
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


def _share_out(run: Callable[[list[Piece]], Result], shares: list[list[Piece]]) -> list[Result]:
    if len(shares) <= 1:
        return [run(share) for share in shares]
    with ThreadPoolExecutor(len(shares)) as pool:
        return list(pool.map(run, shares))


def _call(
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
    library = _library()
    assert library is not None
    widths = [base.shape[2], *(len(weight) for weight in weights)]
    failed = library.bcn_pooled(
        vector_width(),
        ctypes.c_long(len(share)),
        _longs([image for image, _, _ in share]),
        _longs([share[0][1], *(last for _, _, last in share)]),
        ctypes.c_long(base.shape[1]),
        len(weights),
        _longs(widths),
        *_pointers(base, shift),
        (ctypes.c_void_p * len(weights))(*_pointers(*weights)),
        (ctypes.c_void_p * len(biases))(*_pointers(*biases)),
        *_pointers(total, positive, *(grads or (None, None, None))),
        (ctypes.c_void_p * len(grad_weights))(*_pointers(*grad_weights)),
        (ctypes.c_void_p * len(grad_biases))(*_pointers(*grad_biases)),
    )
    if failed:
        raise MemoryError("no memory for the buffers of the hot loop")


def _longs(values: list[int]) -> ctypes.Array[ctypes.c_long]:
    return (ctypes.c_long * len(values))(*values)


def _pointers(*tensors: Tensor | None) -> list[ctypes.c_void_p]:
    return [ctypes.c_void_p(tensor.data_ptr() if tensor is not None else None) for tensor in tensors]
