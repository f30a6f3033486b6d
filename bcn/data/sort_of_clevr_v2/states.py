"""Scenes as states: the same samples as sets of object vectors, for models that take objects instead of pixels.

B scenes, N objects at most, C = 10 numbers of each: x, y, square, circle, and one for each of the six colours.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
import torch

from bcn.data.dataset import Batch
from bcn.data.sort_of_clevr.generated import CHUNK, FreshSamples
from bcn.data.sort_of_clevr.scene import COLOURS, MIDDLE, SHAPES
from bcn.data.sort_of_clevr_v2.dataset import SortOfClevrV2
from bcn.data.sort_of_clevr_v2.scene import Scenes

HALF = 32
"""pixels from the middle to the outermost centre"""


def object_vectors(scenes: Scenes) -> np.ndarray:
    """(B, N, 10) float32, zeros where there is no object; places run from -1 to 1, x to the right and y down."""
    place_BN2 = (np.stack([scenes.x, scenes.y], axis=2) - MIDDLE) / HALF
    shape_BN2, colour_BN6 = np.eye(len(SHAPES))[scenes.shape], np.eye(len(COLOURS))[scenes.colour]
    vector_BNC = np.concatenate([place_BN2, shape_BN2, colour_BN6], axis=2) * scenes.present[..., None]
    return np.asarray(vector_BNC, dtype=np.float32)


class SortOfClevrV2States(SortOfClevrV2):
    """Batches of v2 that have the objects of each scene beside its image."""

    def batch(self, index: Sequence[int] | np.ndarray) -> Batch:
        scenes = self.scenes(np.asarray(index, dtype=np.int64))
        objects_BNC, mask_BN = torch.from_numpy(object_vectors(scenes)), torch.from_numpy(scenes.present)
        return super().batch(index)._replace(objects=objects_BNC, mask=mask_BN)

    def object_supervision(self, grid: tuple[int, int]) -> None:
        """There are no pixels to find objects in."""

    def referent_supervision(self, *, steps: int = 0) -> None:
        """Nothing is left to be found."""

    def checksum(self) -> str:
        """SHA-256 of the checksum without states, in hexadecimal digits, and of all vectors, low bytes first."""
        digest = hashlib.sha256(super().checksum().encode())
        for first in range(0, self.images, CHUNK):
            scenes = self.scenes(np.arange(first, min(first + CHUNK, self.images)))
            digest.update(object_vectors(scenes).astype("<f4").tobytes())
        return digest.hexdigest()


class SortOfClevrV2StatesStream(FreshSamples, SortOfClevrV2States):
    """The same of fresh scenes without end."""
