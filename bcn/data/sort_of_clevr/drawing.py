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
INKS = (0, 128, 156)
"""the other values that occur in RGB"""
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
        for centre_M, paint in _brushes(pixels, range(6), INKS, centre_NK, squares_NK, circles_NK)
    ]
    for i in range(len(edge) - 1):
        pixels[edge[i] : edge[i + 1]] = WHITE
        for paint, at in plan:
            paint(slice(at[i], at[i + 1]))
    for colour, covers_N in _covering(scenes):
        this = covers_N, slice(colour, colour + 1)
        brushes = _brushes(pixels, [colour], (*INKS, WHITE), centre_NK[this], squares_NK[this], circles_NK[this])
        for _, paint in brushes:
            paint(slice(None))
    return image_N3HW


def _covering(scenes: Scenes) -> Iterator[tuple[int, np.ndarray]]:
    """Colours, and the scenes in which their bounding box shares pixels with that of an earlier colour."""
    x_KN, y_KN, _, present_KN = (np.ascontiguousarray(part.T) for part in scenes)
    for colour in range(1, 6):
        apart_KN = np.maximum(abs(x_KN[:colour] - x_KN[colour]), abs(y_KN[:colour] - y_KN[colour]))
        near_KN = (apart_KN <= 2 * RADIUS) & present_KN[:colour] & present_KN[colour]
        if near_KN.any():
            yield colour, near_KN.any(axis=0)


def _brushes(
    pixels: np.ndarray,
    colours: Sequence[int],
    inks: Sequence[int],
    centre_NK: np.ndarray,
    squares_NK: np.ndarray,
    circles_NK: np.ndarray,
) -> Iterator[tuple[np.ndarray, Paint]]:
    """Centres and painter of the runs of one length and ink of the chosen squares or circles.

    The centres are given as pixels of the first channel, and come back as pixels of each channel, image after image.
    """
    rgb_K3 = np.array([RGB[colour] for colour in colours])
    for ink in inks:
        colour_P, channel_P = np.nonzero(rgb_K3 == ink)
        centre_NP = centre_NK[:, colour_P] + channel_P * SIDE**2
        for chosen_NK, runs in ((squares_NK, SQUARE), (circles_NK, CIRCLE)):
            centre_M = centre_NP[chosen_NK[:, colour_P]]
            for length, start_R in runs if len(centre_M) else ():
                yield centre_M, _painter(pixels, ink, length, start_R[:, None] + centre_M)


def _painter(pixels: np.ndarray, ink: int, length: int, start_RM: np.ndarray) -> Paint:
    items = np.ndarray(pixels.size - length + 1, f"V{length}", pixels, strides=(1,))
    run = np.array(np.void(bytes([ink]) * length))

    def paint(these: slice) -> None:
        items[start_RM[:, these].reshape(-1)] = run

    return paint
