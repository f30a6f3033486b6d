"""Samples of clevr-like from their indices: scene, questions and image, made here or in worker processes."""

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch.utils.data

from bcn.data.clevr_like.grammars import find_grammar
from bcn.data.clevr_like.render import render_scene, require_tracer
from bcn.data.clevr_like.scene import make_scene
from bcn.data.clevr_like.workers import make_workers
from bcn.data.vqa.clevr import CLEVR_LIKE_V2


class StreamSample(NamedTuple):
    scene: dict[str, Any]
    questions: list[dict[str, Any]]
    image: np.ndarray
    """(3, size, size) uint8"""


@dataclass(eq=False)
class Renderer:
    """Makes samples, each a function of its index.

    Args:
        size: width and height of the images.
        workers: processes that make the samples of a batch; 0 makes them in this one, as does a worker of a DataLoader,
            which is a process for that already.
    """

    seed: int = 0
    size: int = 128
    split: str = "stream"
    grammar: str = CLEVR_LIKE_V2
    workers: int = 0
    _pool: ProcessPoolExecutor | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        find_grammar(self.grammar)
        require_tracer()

    def __call__(self, index: Sequence[int] | np.ndarray) -> list[StreamSample]:
        numbers = [int(number) for number in index]
        make = partial(make_sample, seed=self.seed, size=self.size, split=self.split, grammar=self.grammar)
        if not self.workers or torch.utils.data.get_worker_info() is not None:
            return list(map(make, numbers))
        if self._pool is None:
            self._pool = make_workers(self.workers, ignore_interrupts=True)
        return list(self._pool.map(make, numbers))

    def __getstate__(self) -> dict[str, Any]:
        """Processes stay where they are."""
        return self.__dict__ | {"_pool": None}


def make_sample(index: int, *, seed: int, size: int, split: str, grammar: str) -> StreamSample:
    scene = make_scene(index, split=split, seed=seed)
    image = render_scene(scene, width=size, height=size).transpose(2, 0, 1)
    return StreamSample(scene, find_grammar(grammar)(scene, seed=seed), np.ascontiguousarray(image))


def usable_workers() -> int:
    """As many as this process has cores; with torchrun, its share of them."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
