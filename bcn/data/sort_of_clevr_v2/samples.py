"""Samples from their indices: scene, image, questions, answers.

A picture is exact unless said otherwise; whatever it is, scene, questions and answers are the same.
"""

from collections.abc import Sequence

import numpy as np

from bcn.data.random import splitmix64
from bcn.data.sort_of_clevr.generated import Samples
from bcn.data.sort_of_clevr_v2.corruption import CORRUPTIONS
from bcn.data.sort_of_clevr_v2.drawing import draw_scenes
from bcn.data.sort_of_clevr_v2.sampling import Questions, ask
from bcn.data.sort_of_clevr_v2.scene import Range, Scenes, check_range, make_scenes
from bcn.data.sort_of_clevr_v2.variety import draw_varied
from bcn.errors import did_you_mean

PICTURES = ("exact", "varied", *CORRUPTIONS)
CHUNK = 256
"""scenes made at a time, for arrays that fit the cache"""


class SampleGenerator:
    """Everything about a sample is a function of the split's stream, the rules and the sample's index.

    Args:
        seed: of the data set.
        stream: number of the split's random stream.
        objects: the fewest and the most in a scene, 1 to 12.
        questions: up to four of each kind about each image, or all.
        picture: one of PICTURES.
    """

    def __init__(self, seed: int, stream: int, *, objects: Range, questions: Questions, picture: str) -> None:
        check_range(objects)
        if picture not in PICTURES:
            raise did_you_mean("picture", picture, PICTURES)
        self.stream = splitmix64(seed, stream)
        self.objects, self.questions, self.picture = objects, questions, picture

    def scenes(self, index: Sequence[int] | np.ndarray) -> Scenes:
        return make_scenes(splitmix64(self.stream, np.asarray(index)), self.objects)

    def samples(self, index: np.ndarray) -> Samples:
        parts = [self._make(index[first : first + CHUNK]) for first in range(0, max(1, len(index)), CHUNK)]
        return parts[0] if len(parts) == 1 else Samples(*map(np.concatenate, zip(*parts, strict=True)))

    def _make(self, index: np.ndarray) -> Samples:
        sample_N = splitmix64(self.stream, index)
        scenes = make_scenes(sample_N, self.objects)
        return Samples(self._draw(scenes, sample_N), *ask(sample_N, scenes, self.questions))

    def _draw(self, scenes: Scenes, sample_N: np.ndarray) -> np.ndarray:
        if self.picture == "varied":
            return draw_varied(scenes, sample_N)
        image_N3HW = draw_scenes(scenes)
        return image_N3HW if self.picture == "exact" else CORRUPTIONS[self.picture](image_N3HW, sample_N)
