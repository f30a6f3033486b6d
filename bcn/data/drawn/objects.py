"""What object supervision asks of the things of drawn-v1, besides where they are: name, colour and size.

B scenes, T things, each with A = 3 attributes.
"""

from collections.abc import Sequence

import numpy as np

from bcn.data.dataset import IGNORE_INDEX
from bcn.data.drawn.scene import COLOURS, LETTERS, MOST, SHAPES, SIZES, Scene

SIZE_STEPS = 8
"""classes of sizes, from the smallest share of the canvas's shorter side to the largest"""
KINDS = ("exist", "name", "colour", "size")
ANSWERS = ("no", "yes", *SHAPES, *LETTERS, *COLOURS, *(f"size {step}" for step in range(SIZE_STEPS)))


def label_things(scenes: Sequence[Scene]) -> tuple[np.ndarray, np.ndarray]:
    """The centres of things (B, T, 2), and the answers to what is asked about them (B, T, A)."""
    centre_BT2, value_BTA = np.zeros((len(scenes), MOST, 2)), np.full((len(scenes), MOST, 3), IGNORE_INDEX)
    for row, scene in enumerate(scenes):
        for column, thing in enumerate(scene.things):
            share = (thing.size / min(scene.width, scene.height) - SIZES[0]) / (SIZES[1] - SIZES[0])
            size = min(int(share * SIZE_STEPS), SIZE_STEPS - 1)
            centre_BT2[row, column] = thing.x / scene.width, thing.y / scene.height
            value_BTA[row, column] = [ANSWERS.index(name) for name in (thing.name, thing.colour, f"size {size}")]
    return centre_BT2, value_BTA
