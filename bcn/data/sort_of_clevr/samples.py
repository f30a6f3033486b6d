"""Samples from their indices: scene, image, questions, answers.

numpy makes a batch of 8 in 1.2 ms, 0.9 % of a training step of multirn-h on fresh scenes. The same in C took 0.3 ms,
which made such a run 0.7 % faster (docs/notebook/performance.md), and did not earn its 330 lines.

N samples, Q questions about each.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from bcn.data.random import splitmix64
from bcn.data.sort_of_clevr.drawing import draw_scenes
from bcn.data.sort_of_clevr.generated import Samples
from bcn.data.sort_of_clevr.questions import (
    LEGACY_OWN_DISTANCE,
    answer_all,
    every_question,
    sample_distinct,
    sample_with_replacement,
)
from bcn.data.sort_of_clevr.scene import OBJECTS, Scenes, scenes_legacy, scenes_v1
from bcn.errors import BcnError

Questions = Literal["sampled", "all"]


class SampleGenerator:
    """Everything about a sample is a function of the split's stream, the rules and the sample's index.

    Args:
        seed: of the data set.
        stream: number of the split's random stream.
        legacy: the rules of the original public generator, instead of v1's.
        objects: in each scene, 2 to 6; 6 in the original's.
        questions: 20 about each image, or all.
    """

    def __init__(self, seed: int, stream: int, *, legacy: bool, objects: int, questions: Questions) -> None:
        if objects not in OBJECTS or (legacy and objects != 6):
            accepted = "6" if legacy else f"{OBJECTS[0]} to {OBJECTS[-1]}"
            raise BcnError(f"objects={objects}: a scene of {'the original' if legacy else 'v1'} has {accepted} objects")
        self.stream = splitmix64(seed, stream)
        self.legacy, self.objects, self.questions = legacy, objects, questions

    def scenes(self, index: Sequence[int] | np.ndarray) -> Scenes:
        sample_N = splitmix64(self.stream, np.asarray(index))
        return scenes_legacy(sample_N) if self.legacy else scenes_v1(sample_N, objects=self.objects)

    def samples(self, index: Sequence[int] | np.ndarray) -> Samples:
        sample_N, scenes = splitmix64(self.stream, np.asarray(index)), self.scenes(index)
        if self.questions == "all":
            number_NQ = every_question(scenes.present, objects=self.objects)
        elif self.legacy:
            number_NQ = sample_with_replacement(sample_N)
        else:
            number_NQ = sample_distinct(sample_N, scenes.present, objects=self.objects)
        answer_N36 = answer_all(scenes, own_distance=LEGACY_OWN_DISTANCE if self.legacy else None)
        return Samples(draw_scenes(scenes), number_NQ, np.take_along_axis(answer_N36, number_NQ, axis=1))
