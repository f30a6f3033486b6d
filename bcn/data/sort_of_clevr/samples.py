"""Samples from their indices: scene, image, questions, answers. In C where it is compiled (samples.c), else in numpy.

Both give the same bytes; C takes a few microseconds for a sample, whether there are many or a batch of them.

N samples, Q questions about each.
"""

import ctypes
from collections.abc import Sequence
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from bcn.data.random import splitmix64
from bcn.data.sort_of_clevr.drawing import draw
from bcn.data.sort_of_clevr.questions import (
    LEGACY_OWN_DISTANCE,
    PER_HALF,
    answer_all,
    every_question,
    sample_distinct,
    sample_with_replacement,
)
from bcn.data.sort_of_clevr.scene import SIDE, Scenes, scenes_legacy, scenes_v1

Questions = Literal["sampled", "all"]


class Samples(NamedTuple):
    image: np.ndarray
    """(N, 3, 75, 75) uint8"""
    number: np.ndarray
    """(N, Q) uint8, the number of each question, 0 to 35"""
    answer: np.ndarray
    """(N, Q) uint8, index in ANSWERS"""


@cache
def library() -> ctypes.CDLL | None:
    """What samples.c was compiled to; None where it was not."""
    paths = (Path(__file__).with_name(f"_samples{suffix}") for suffix in EXTENSION_SUFFIXES)
    return next((ctypes.CDLL(str(path)) for path in paths if path.exists()), None)


class Generator:
    """Everything about a sample is a function of the split's stream, the rules and the sample's index."""

    def __init__(self, seed: int, stream: int, *, legacy: bool, objects: int, questions: Questions) -> None:
        self.stream = splitmix64(seed, stream)
        self.legacy, self.objects, self.questions = legacy, objects, questions

    def scenes(self, index: Sequence[int] | np.ndarray) -> Scenes:
        sample_N = splitmix64(self.stream, np.asarray(index))
        return scenes_legacy(sample_N) if self.legacy else scenes_v1(sample_N, objects=self.objects)

    def samples(self, index: Sequence[int] | np.ndarray) -> Samples:
        compiled = library()
        return self._in_numpy(np.asarray(index)) if compiled is None else self._in_c(compiled, np.asarray(index))

    def _in_numpy(self, index_N: np.ndarray) -> Samples:
        sample_N, scenes = splitmix64(self.stream, index_N), self.scenes(index_N)
        if self.questions == "all":
            number_NQ = every_question(scenes.present, objects=self.objects)
        elif self.legacy:
            number_NQ = sample_with_replacement(sample_N)
        else:
            number_NQ = sample_distinct(sample_N, scenes.present, objects=self.objects)
        answer_N36 = answer_all(scenes, own_distance=LEGACY_OWN_DISTANCE if self.legacy else None)
        return Samples(draw(scenes), number_NQ, np.take_along_axis(answer_N36, number_NQ, axis=1))

    def _in_c(self, compiled: ctypes.CDLL, index_N: np.ndarray) -> Samples:
        every = self.questions == "all"
        asked = 6 * self.objects if every else 2 * min(PER_HALF, 3 * self.objects)
        index_N = np.ascontiguousarray(index_N, dtype=np.uint64)
        image = np.empty((len(index_N), 3, SIDE, SIDE), np.uint8)
        number, answer = np.empty((2, len(index_N), asked), np.uint8)
        compiled.bcn_samples(
            int(self.legacy),
            self.objects,
            int(every),
            asked,
            ctypes.c_uint64(int(self.stream)),
            ctypes.c_long(len(index_N)),
            *(ctypes.c_void_p(array.ctypes.data) for array in (index_N, image, number, answer)),
        )
        return Samples(image, number, answer)
