"""Work shared out to threads, which run C or torch without Python's lock.

The threads are kept from call to call. A thread has its own setting of what becomes of denormal numbers, which it
inherits from the one that starts it (`torch.set_flush_denormal`), so there is a pool of threads for either.
"""

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from itertools import groupby, pairwise
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

SMALLEST_NORMAL = sys.float_info.min
MAX_THREADS = 1024
"""of a pool, which starts one only where all others are busy"""
Result = TypeVar("Result")
Share = TypeVar("Share")


class Piece(NamedTuple):
    """Some questions about one image."""

    image: int
    start: int
    stop: int


def run_shares(run: Callable[[Share], Result], shares: list[Share]) -> list[Result]:
    """Run each share in a thread, the first in this one."""
    if len(shares) <= 1:
        return [run(share) for share in shares]
    pool = _pool(flushes_denormals())
    others = [pool.submit(run, share) for share in shares[1:]]
    try:
        first = run(shares[0])
    finally:
        wait(others)  # they write to the caller's tensors
    return [first, *(other.result() for other in others)]


def flushes_denormals() -> bool:
    """Whether this thread rounds denormal numbers to zero.

    >>> flushes_denormals()
    False
    """
    return SMALLEST_NORMAL / 2 == 0


@cache
def _pool(flushes: bool) -> ThreadPoolExecutor:
    """Threads that were started by one that flushes denormals, or by one that does not."""
    return ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="bcn")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a child has none of its parent's threads


def share_images(images: int) -> list[range]:
    """Images in as many ranges as torch has threads."""
    threads = torch.get_num_threads()
    cuts = [images * step // threads for step in range(threads + 1)]
    return [range(*cut) for cut in pairwise(cuts) if cut[0] < cut[1]]


def share_questions(owner_U: Tensor, *, split_images: bool) -> list[list[Piece]]:
    """For each thread, its pieces. The questions about an image stay together unless images may be split."""
    threads, images = torch.get_num_threads(), owner_U.tolist()
    if len(images) == 1:
        return [[Piece(images[0], 0, 1)]]
    pieces, start = [], 0
    for image, group in groupby(images):
        stop = start + len(list(group))
        steps = threads if split_images else 1
        cuts = [start + (stop - start) * step // steps for step in range(steps + 1)]
        pieces += [Piece(image, *cut) for cut in pairwise(cuts)]
        start = stop
    shares: list[list[Piece]] = [[] for _ in range(threads)]
    for piece in pieces:
        shares[threads * piece.start // len(images)].append(piece)
    return [share for share in shares if share]
