"""Drawing: scenes to images of 75 x 75, white ground, without a loop over images.

The pixels of a square are those within 5 of the centre in both directions, the pixels of a circle those whose squared
distance from the centre is at most 25: eleven horizontal runs each. All runs of one length and one value, of whatever
object and channel, are written at once, as single items of that many bytes. A later colour covers an earlier one.

N scenes, K = 6 colours, P pairs of a colour and a channel, M objects, R runs.
"""

import numpy as np

from bcn.data.sort_of_clevr.scene import RADIUS, SIDE, Scenes

RGB = ((255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 156, 0), (128, 128, 128), (255, 255, 0))
"""of the six colours in their order"""
WHITE = 255

HALF_WIDTHS = ((5,) * 11, (0, 3, 4, 4, 4, 5, 4, 4, 4, 3, 0))
"""of the runs of a square and of a circle, from the top"""

CHUNK = 100
"""images drawn at a time: their pixels stay in the cache"""


def draw(scenes: Scenes) -> np.ndarray:
    """(N, 3, 75, 75) uint8."""
    images = len(scenes.x)
    image_N3HW = np.empty((images, 3, SIDE, SIDE), dtype=np.uint8)
    pixels = image_N3HW.reshape(-1)
    centre_NK = (np.arange(images)[:, None] * 3 * SIDE + scenes.y) * SIDE + scenes.x
    for first in range(0, images, CHUNK):
        chunk = slice(first, first + CHUNK)
        image_N3HW[chunk] = WHITE
        _paint(pixels, centre_NK[chunk], scenes.shape[chunk], scenes.present[chunk], on_white=True)
    covers_NK = _covers(scenes)
    rows = np.flatnonzero(covers_NK.any(axis=1))
    for colour in range(6 if len(rows) else 0):
        again_NK = covers_NK[rows] & (np.arange(6) == colour)
        _paint(pixels, centre_NK[rows], scenes.shape[rows], again_NK, on_white=False)
    return image_N3HW


def _covers(scenes: Scenes) -> np.ndarray:
    """(N, 6) whether an object's bounding box shares pixels with that of an earlier colour."""
    covers_NK = np.zeros_like(scenes.present)
    for colour in range(1, 6):
        near_NK = scenes.present[:, :colour] & scenes.present[:, colour, None]
        for of_NK in (scenes.x, scenes.y):
            near_NK &= abs(of_NK[:, :colour] - of_NK[:, colour, None]) <= 2 * RADIUS
        covers_NK[:, colour] = near_NK.any(axis=1)
    return covers_NK


def _paint(
    pixels: np.ndarray, centre_NK: np.ndarray, shape_NK: np.ndarray, chosen_NK: np.ndarray, *, on_white: bool
) -> None:
    """Paint the chosen objects, whose centres in the first channel are at these pixels; on white, white is no work."""
    for value in {value for rgb in RGB for value in rgb} - ({WHITE} if on_white else set()):
        colour_P, channel_P = np.nonzero(np.equal(RGB, value))
        centre_NP = centre_NK[:, colour_P] + channel_P * SIDE**2
        for shape, half_widths in enumerate(HALF_WIDTHS):
            centre_M = centre_NP[(chosen_NK & (shape_NK == shape))[:, colour_P]]
            for half_width in set(half_widths):
                length = 2 * half_width + 1
                runs = np.ndarray(max(pixels.size - length + 1, 0), np.dtype((np.void, length)), pixels, strides=(1,))
                row_R = np.flatnonzero(np.equal(half_widths, half_width)) - RADIUS
                start_MR = centre_M[:, None] + (row_R * SIDE - half_width)
                runs[start_MR.reshape(-1)] = np.void(bytes([value]) * length)
