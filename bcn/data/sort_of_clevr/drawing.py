"""Drawing: scenes to images of 75 x 75, white ground, without a loop over images.

The pixels of a square are those within 5 of the centre in both directions, the pixels of a circle those whose squared
distance from the centre is at most 25: eleven horizontal runs each. All runs of one length and one value, of whatever
object and channel, are written at once, as single items of that many bytes. A later colour covers an earlier one.

N scenes, K colours, P pairs of a colour and a channel, M objects' centres, R runs of an object.
"""

from collections.abc import Sequence

import numpy as np

from bcn.data.sort_of_clevr.scene import RADIUS, SIDE, Scenes

RGB = ((255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 156, 0), (128, 128, 128), (255, 255, 0))
"""of the six colours in their order"""
WHITE = 255


def _runs(half_widths: tuple[int, ...]) -> list[tuple[int, np.ndarray]]:
    """From an object's rows, top to bottom: each length that occurs, and where its runs start, from the centre."""
    rows = np.array(half_widths)
    return [(2 * half + 1, (np.flatnonzero(rows == half) - RADIUS) * SIDE - half) for half in sorted(set(half_widths))]


SQUARE = _runs((5,) * 11)
CIRCLE = _runs((0, 3, 4, 4, 4, 5, 4, 4, 4, 3, 0))


def draw(scenes: Scenes, *, out: np.ndarray | None = None) -> np.ndarray:
    """(N, 3, 75, 75) uint8, in `out` if it is given; quickest for some hundred images, which fit the cache."""
    images = len(scenes.x)
    image_N3HW = np.empty((images, 3, SIDE, SIDE), dtype=np.uint8) if out is None else out
    image_N3HW.fill(WHITE)
    pixels = image_N3HW.reshape(-1)
    x_KN, y_KN, shape_KN, present_KN = (np.ascontiguousarray(part.T) for part in scenes)
    centre_KN = (np.arange(images) * 3 * SIDE + y_KN) * SIDE + x_KN
    squares_KN, circles_KN = present_KN & (shape_KN == 0), present_KN & (shape_KN == 1)
    _paint(pixels, range(6), centre_KN, squares_KN, circles_KN, white=False)  # white need not be painted on white
    for colour in range(1, 6):
        covers_N = _covers(x_KN, y_KN, present_KN, colour)
        if covers_N.any():
            this = slice(colour, colour + 1)
            squares_1N, circles_1N = squares_KN[this] & covers_N, circles_KN[this] & covers_N
            _paint(pixels, [colour], centre_KN[this], squares_1N, circles_1N, white=True)
    return image_N3HW


def _covers(x_KN: np.ndarray, y_KN: np.ndarray, present_KN: np.ndarray, colour: int) -> np.ndarray:
    """(N) whether the bounding box of this object shares pixels with one of an earlier colour."""
    near_KN = (abs(x_KN[:colour] - x_KN[colour]) <= 2 * RADIUS) & (abs(y_KN[:colour] - y_KN[colour]) <= 2 * RADIUS)
    covers_N: np.ndarray = (near_KN & present_KN[:colour]).any(axis=0) & present_KN[colour]
    return covers_N


def _paint(
    pixels: np.ndarray,
    colours: Sequence[int],
    centre_KN: np.ndarray,
    squares_KN: np.ndarray,
    circles_KN: np.ndarray,
    *,
    white: bool,
) -> None:
    """Paint squares and circles of these colours, whose centres are at these pixels of the first channel."""
    rgb_K3 = np.array([RGB[colour] for colour in colours])
    for value in set(rgb_K3.flat) - (set() if white else {WHITE}):
        colour_P, channel_P = np.nonzero(rgb_K3 == value)
        centre_PN = centre_KN[colour_P] + channel_P[:, None] * SIDE**2
        for chosen_KN, runs in ((squares_KN, SQUARE), (circles_KN, CIRCLE)):
            centre_M = centre_PN[chosen_KN[colour_P]]
            for length, start_R in runs if len(centre_M) else ():
                items = np.ndarray(pixels.size - length + 1, f"V{length}", pixels, strides=(1,))
                items[(start_R[:, None] + centre_M).reshape(-1)] = np.void(bytes([value]) * length)
