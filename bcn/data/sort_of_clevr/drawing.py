"""Drawing: scenes to images of 75 x 75, white ground, without a loop over images.

The pixels of a square are those within 5 of the centre in both directions, the pixels of a circle those whose squared
distance from the centre is at most 25: eleven horizontal runs each. All runs of one length and one value, of whatever
object and channel, are written at once, as single items of that many bytes. A later colour covers an earlier one.

N scenes, K = 6 colours, P pairs of a colour and a channel, M objects, R runs of an object.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bcn.data.sort_of_clevr.scene import RADIUS, SIDE, Scenes

RGB = ((255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 156, 0), (128, 128, 128), (255, 255, 0))
"""of the six colours in their order"""
WHITE = 255
INKS = (0, 128, 156)
"""the other values that occur in RGB: on white ground white need not be painted"""
CHUNK = 64
"""images painted at a time: so many stay in the cache from their ground to their last run"""
CHANNEL = SIDE**2
IMAGE = 3 * CHANNEL

OFFSET = np.add.outer(np.arange(-RADIUS, RADIUS + 1) * SIDE, np.arange(-RADIUS, RADIUS + 1)).reshape(-1)
"""(121) the pixels of a square, counted from its centre"""
DISC = np.add.outer(np.arange(-RADIUS, RADIUS + 1) ** 2, np.arange(-RADIUS, RADIUS + 1) ** 2).reshape(-1) <= RADIUS**2
"""(121) which of them belong to a circle"""


def _runs(mask: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """Each length of run that a shape has, and where the runs of this length start, counted from the centre."""
    lengths = mask.reshape(11, 11).sum(axis=1)
    starts = OFFSET.reshape(11, 11)[np.arange(11), mask.reshape(11, 11).argmax(axis=1)]
    return [(int(length), starts[lengths == length]) for length in np.unique(lengths)]


SQUARE, CIRCLE = _runs(np.ones_like(DISC)), _runs(DISC)
LENGTHS = {length for length, _ in SQUARE + CIRCLE}


class Strokes(NamedTuple):
    """Runs of one length and one ink, image after image."""

    start: np.ndarray
    """(R, M) pixels, counted from the first image of the chunk"""
    run: np.ndarray
    """the pixels of a run, as one item"""
    edge: list[int]
    """where in M each chunk begins"""


def draw(scenes: Scenes) -> np.ndarray:
    """(N, 3, 75, 75) uint8."""
    image_N3HW = np.empty((len(scenes.x), 3, SIDE, SIDE), dtype=np.uint8)
    for i, chunk in enumerate(draw_chunks(scenes)):
        image_N3HW[i * CHUNK : (i + 1) * CHUNK] = chunk
    return image_N3HW


def draw_chunks(scenes: Scenes, size: int = CHUNK) -> Iterator[np.ndarray]:
    """The images of `size` scenes after another: while there are less than a hundred, they stay in the cache."""
    images = len(scenes.x)
    first = np.append(np.arange(0, images, size), images)
    centre_NK = (np.arange(images) % size)[:, None] * IMAGE + scenes.y * np.int64(SIDE) + scenes.x
    strokes = list(_strokes(scenes, centre_NK, first))
    row_M, colour_M = _covering(scenes)
    edge = np.searchsorted(row_M, first).tolist()
    for i in range(len(first) - 1):
        image_N3HW = np.full((first[i + 1] - first[i], 3, SIDE, SIDE), WHITE, dtype=np.uint8)
        pixels = image_N3HW.reshape(-1)
        items = {n: np.ndarray(pixels.size - n + 1, f"V{n}", pixels, strides=(1,)) for n in LENGTHS}
        for start_RM, run, at in strokes:
            items[run.itemsize][start_RM[:, at[i] : at[i + 1]].reshape(-1)] = run
        if edge[i] < edge[i + 1]:
            these = row_M[edge[i] : edge[i + 1]], colour_M[edge[i] : edge[i + 1]]
            _cover(pixels, centre_NK[these], these[1], scenes.shape[these])
        yield image_N3HW


def _strokes(scenes: Scenes, centre_NK: np.ndarray, first: np.ndarray) -> Iterator[Strokes]:
    """All runs of all objects in all channels where they are not white."""
    for ink in INKS:
        colour_P, channel_P = np.nonzero(np.equal(RGB, ink))
        centre_NP = centre_NK[:, colour_P] + channel_P * CHANNEL
        for shape, runs in enumerate((SQUARE, CIRCLE)):
            chosen_NP = (scenes.present & (scenes.shape == shape))[:, colour_P]
            edge = np.append(0, chosen_NP.sum(axis=1).cumsum())[first].tolist()
            centre_M = centre_NP[chosen_NP]
            for length, start_R in runs:
                yield Strokes(start_R[:, None] + centre_M, np.array(np.void(bytes([ink]) * length)), edge)


def _covering(scenes: Scenes) -> tuple[np.ndarray, np.ndarray]:
    """Scene and colour of the objects whose bounding box shares pixels with that of an earlier colour."""
    x_KN, y_KN, _, present_KN = (np.ascontiguousarray(part.T) for part in scenes)
    covers_KN = np.zeros_like(present_KN)
    for colour in range(1, 6):
        apart_KN = np.maximum(abs(x_KN[:colour] - x_KN[colour]), abs(y_KN[:colour] - y_KN[colour]))
        covers_KN[colour] = ((apart_KN <= 2 * RADIUS) & present_KN[:colour] & present_KN[colour]).any(axis=0)
    row_M, colour_M = np.nonzero(covers_KN.T)
    return row_M, colour_M


def _cover(pixels: np.ndarray, centre_M: np.ndarray, colour_M: np.ndarray, shape_M: np.ndarray) -> None:
    """Paint whole objects one after another, white included, so that the last lies on top."""
    offset_2S = np.stack([OFFSET, OFFSET * DISC])  # what is not in the disc falls on its centre
    pixel_M3S = (centre_M[:, None] + np.arange(3) * CHANNEL)[:, :, None] + offset_2S[shape_M][:, None]
    value_M3 = np.array(RGB, dtype=np.uint8)[colour_M]
    pixels[pixel_M3S.reshape(-1)] = np.repeat(value_M3.reshape(-1), len(OFFSET))
