"""What a model of Sort-of-CLEVR with a BCN does on scenes in general: the mean of its vector, and which channels vary.

K broadcast channels, C x h x w the map that the BCN sees.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bcn.data.registry import open_dataset
from bcn.data.sort_of_clevr.scene import SIDE
from bcn.inference.reasoner import Reasoner
from bcn.training.broadcast_probe import active_channels, collect

SCENES = 128
"""over which the mean of a vector is taken, and its channels vary or do not"""


class Typical(NamedTuple):
    """What a model with a BCN does on scenes in general."""

    mean_K: Tensor
    active_K: np.ndarray
    """bool: whether a channel varies over scenes"""
    empty_Chw: Tensor
    """the map of an image without objects"""


@cache
def typical(reasoner: Reasoner) -> Typical:
    """Of random scenes with the questions that it is asked."""
    assert reasoner.coding is not None
    scenes = open_dataset(reasoner.coding.fresh, "train", images=SCENES)
    collected = collect(reasoner.model, scenes)
    assert collected is not None
    empty = np.full((SIDE, SIDE, 3), 255, np.uint8)
    with torch.inference_mode():
        empty_Chw = reasoner.model.features(reasoner.pixels(empty))[0]  # type: ignore[operator]
    vector_BK = collected.vector_BK
    return Typical(vector_BK.mean(dim=0), active_channels(vector_BK).numpy(), empty_Chw)
