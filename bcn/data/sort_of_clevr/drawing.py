"""Drawing: scenes to images of 75 x 75, white ground, without a loop over images.

The pixels of a square are those within 5 of the centre in both directions, the pixels of a circle those whose squared
distance from the centre is at most 25: eleven horizontal runs each. All runs of one length and one value, of whatever
object and channel, are written at once, as single items of that many bytes. A later colour covers an earlier one.

N scenes, K colours, P pairs of a colour and a channel, M objects' centres, R runs of an object.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from bcn.data.sort_of_clevr.scene import RADIUS, SIDE, Scenes

RGB = ((255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 156, 0), (128, 128, 128), (255, 255, 0))
"""of the six colours in their order"""
WHITE = 255
IMAGE = 3 * SIDE**2
"""pixels of an image, channels counted apart"""
CHUNK = 64
"""images painted at a time: so many stay in the cache from their ground to their last run"""

Paint = Callable[[slice], None]
"""paints some of the centres that it was made for"""


def _runs(half_widths: tuple[int, ...]) -> list[tuple[int, np.ndarray]]:
    """From an object's rows, top to bottom: each length that occurs, and where its runs start, from the centre."""
    rows = np.array(half_widths)
    return [(2 * half + 1, (np.flatnonzero(rows == half) - RADIUS) * SIDE - half) for half in sorted(set(half_widths))]


SQUARE = _runs((5,) * 11)
CIRCLE = _runs((0, 3, 4, 4, 4, 5, 4, 4, 4, 3, 0))


def draw(scenes: Scenes) -> np.ndarray:
    """(N, 3, 75, 75) uint8."""
    images = len(scenes.x)
    image_N3HW = np.empty((images, 3, SIDE, SIDE), dtype=np.uint8)
    pixels = image_N3HW.reshape(-1)
    centre_NK = np.arange(images)[:, None] * IMAGE + scenes.y * np.int64(SIDE) + scenes.x
    squares_NK, circles_NK = scenes.present & (scenes.shape == 0), scenes.present & (scenes.shape == 1)
    edge = np.append(np.arange(0, images, CHUNK), images) * IMAGE
    # on white ground white need not be painted
    plan = [
        (paint, np.searchsorted(centre_M, edge).tolist())
        for value, centre_M, paint in _brushes(pixels, range(6), centre_NK, squares_NK, circles_NK)
        if value != WHITE
    ]
    for i in range(len(edge) - 1):
        pixels[edge[i] : edge[i + 1]] = WHITE
        for paint, at in plan:
            paint(slice(at[i], at[i + 1]))
    for colour in range(1, 6):
        covers_N = _covers(scenes, colour)
        if covers_N.any():
            this = covers_N, slice(colour, colour + 1)
            for _, _, paint in _brushes(pixels, [colour], centre_NK[this], squares_NK[this], circles_NK[this]):
                paint(slice(None))
    return image_N3HW


def _covers(scenes: Scenes, colour: int) -> np.ndarray:
    """(N) whether the bounding box of this object shares pixels with one of an earlier colour."""
    x_KN, y_KN, _, present_KN = (part.T for part in scenes)
    near_KN = (abs(x_KN[:colour] - x_KN[colour]) <= 2 * RADIUS) & (abs(y_KN[:colour] - y_KN[colour]) <= 2 * RADIUS)
    covers_N: np.ndarray = (near_KN & present_KN[:colour] & present_KN[colour]).any(axis=0)
    return covers_N


def _brushes(
    pixels: np.ndarray, colours: Sequence[int], centre_NK: np.ndarray, squares_NK: np.ndarray, circles_NK: np.ndarray
) -> Iterator[tuple[int, np.ndarray, Paint]]:
    """Value, centres and painter of the runs of one length and value of the chosen squares or circles.

    The centres are given as pixels of the first channel, and come back as pixels of each channel, image after image.
    """
    rgb_K3 = np.array([RGB[colour] for colour in colours])
    for value in sorted(set(rgb_K3.flat)):
        colour_P, channel_P = np.nonzero(rgb_K3 == value)
        centre_NP = centre_NK[:, colour_P] + channel_P * SIDE**2
        for chosen_NK, runs in ((squares_NK, SQUARE), (circles_NK, CIRCLE)):
            centre_M = centre_NP[chosen_NK[:, colour_P]]
            for length, start_R in runs if len(centre_M) else ():
                yield value, centre_M, _painter(pixels, int(value), length, start_R[:, None] + centre_M)


def _painter(pixels: np.ndarray, value: int, length: int, start_RM: np.ndarray) -> Paint:
    items = np.ndarray(pixels.size - length + 1, f"V{length}", pixels, strides=(1,))
    run = np.array(np.void(bytes([value]) * length))

    def paint(these: slice) -> None:
        items[start_RM[:, these].reshape(-1)] = run

    return paint
