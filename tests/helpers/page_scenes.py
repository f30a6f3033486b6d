"""Scenes of the page as the data set of v1 has them."""

import numpy as np

from bcn.data.sort_of_clevr import COLOURS, SHAPES, Scenes
from bcn.web.schema import SceneObject


def to_scenes(objects: list[SceneObject]) -> Scenes:
    """Of each colour the object that has it."""
    by_colour = {each.colour: each for each in objects}
    x, y, shape, present = np.zeros((4, 1, 6), dtype=np.int16)
    for number, colour in enumerate(COLOURS):
        if colour in by_colour:
            each = by_colour[colour]
            x[0, number], y[0, number], present[0, number] = each.x, each.y, 1
            shape[0, number] = SHAPES.index(each.shape)
    return Scenes(x, y, shape.astype(np.uint8), present.astype(bool))
