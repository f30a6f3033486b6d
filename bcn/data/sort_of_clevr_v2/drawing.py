"""The exact picture: white ground, whole pixels, hard edges, as sort-of-clevr-v1 draws.

N scenes, M objects of one colour and shape, S pixels of each, P = 75 x 75.
"""

import numpy as np

from bcn.data.sort_of_clevr.drawing import DISC, OFFSET, RGB, WHITE
from bcn.data.sort_of_clevr.scene import SIDE
from bcn.data.sort_of_clevr_v2.scene import Scenes


def draw_scenes(scenes: Scenes) -> np.ndarray:
    """Images (N, 3, 75, 75) uint8 of scenes; objects do not overlap, so that their order is all the same."""
    image_N3P = np.full((len(scenes.x), 3, SIDE**2), WHITE, dtype=np.uint8)
    centre_NK = scenes.y * np.int64(SIDE) + scenes.x
    look_NK = np.where(scenes.present, 2 * scenes.colour + scenes.shape, 2 * len(RGB))
    for colour, rgb in enumerate(RGB):
        for shape, offset_S in enumerate((OFFSET, OFFSET[DISC])):
            row_M, object_M = np.nonzero(look_NK == 2 * colour + shape)
            pixel_MS = centre_NK[row_M, object_M, None] + offset_S
            for channel, value in enumerate(rgb):
                if value != WHITE:
                    image_N3P[row_M[:, None], channel, pixel_MS] = value
    return image_N3P.reshape(-1, 3, SIDE, SIDE)
