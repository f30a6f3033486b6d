"""Drawing: scenes to images of 75 x 75, white ground, colour after colour, all images at once.

The pixels of a square are those within 5 of the centre in both directions, the pixels of a circle those whose squared
distance from the centre is at most 25. A later colour covers an earlier one.

N scenes, M of them with an object of one colour and shape, S pixels of it, P = 75 x 75.
"""

import numpy as np

from bcn.data.sort_of_clevr.scene import RADIUS, SIDE, Scenes

RGB = ((255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 156, 0), (128, 128, 128), (255, 255, 0))
"""of the six colours in their order"""
WHITE = 255

OFFSET = np.add.outer(np.arange(-RADIUS, RADIUS + 1) * SIDE, np.arange(-RADIUS, RADIUS + 1)).reshape(-1)
"""(121) the pixels of a square, counted from its centre"""
DISC = np.add.outer(np.arange(-RADIUS, RADIUS + 1) ** 2, np.arange(-RADIUS, RADIUS + 1) ** 2).reshape(-1) <= RADIUS**2
"""(121) which of them belong to a circle"""


def draw_scenes(scenes: Scenes) -> np.ndarray:
    """Images (N, 3, 75, 75) uint8 of scenes."""
    image_N3P = np.full((len(scenes.x), 3, SIDE**2), WHITE, dtype=np.uint8)
    centre_NK = scenes.y * np.int64(SIDE) + scenes.x
    for colour, rgb in enumerate(RGB):
        for shape, offset_S in enumerate((OFFSET, OFFSET[DISC])):
            row_M = np.flatnonzero(scenes.present[:, colour] & (scenes.shape[:, colour] == shape))
            pixel_MS = centre_NK[row_M, colour, None] + offset_S
            for channel, value in enumerate(rgb):
                image_N3P[row_M[:, None], channel, pixel_MS] = value
    return image_N3P.reshape(-1, 3, SIDE, SIDE)
