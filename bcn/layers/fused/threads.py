"""Work shared out to threads, which run C or torch without Python's lock."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby, pairwise
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

Result = TypeVar("Result")
Share = TypeVar("Share")


class Piece(NamedTuple):
    """Some questions about one image."""

    image: int
    start: int
    stop: int


def run_shares(run: Callable[[Share], Result], shares: list[Share]) -> list[Result]:
    """One thread for each share."""
    if len(shares) <= 1:
        return [run(share) for share in shares]
    with ThreadPoolExecutor(len(shares)) as pool:
        return list(pool.map(run, shares))


def share_images(images: int) -> list[range]:
    """Images in as many ranges as torch has threads."""
    threads = torch.get_num_threads()
    cuts = [images * step // threads for step in range(threads + 1)]
    return [range(*cut) for cut in pairwise(cuts) if cut[0] < cut[1]]


def share_questions(owner_U: Tensor, *, split_images: bool) -> list[list[Piece]]:
    """For each thread, its pieces. The questions about an image stay together unless images may be split."""
    threads, images = torch.get_num_threads(), owner_U.tolist()
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
