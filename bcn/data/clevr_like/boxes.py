"""Boxes of the objects that a scene shows: what a detector is trained on.

T objects, H x W pixels.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bcn.data.clevr_like import camera
from bcn.data.clevr_like.visibility import first_hits
from bcn.data.vqa.clevr import ATTRIBUTES

STEP = 2
"""pixels of 480 x 320 between two rays"""


class Boxes(NamedTuple):
    box: np.ndarray
    """(T, 4) float32: left, top, right and bottom, in units of the image's width and height"""
    label: np.ndarray
    """(T,) index of the shape in LABELS"""


LABELS = ATTRIBUTES["shape"]


def visible_boxes(scene: dict[str, Any]) -> Boxes:
    """The smallest box around the visible part of each object; one that is hidden has none.

    >>> from bcn.data.clevr_like.scene import make_scene
    >>> scene = make_scene(0)
    >>> boxes = visible_boxes(scene)
    >>> boxes.box.shape == (len(scene["objects"]), 4)
    True
    """
    objects: Sequence[dict[str, Any]] = scene["objects"]
    shown_HW = first_hits(objects, scene.get("camera") or camera.locate(objects), STEP)
    boxes, labels = [], []
    for number, thing in enumerate(objects):
        rows, columns = (shown_HW == number).any(axis=1).nonzero()[0], (shown_HW == number).any(axis=0).nonzero()[0]
        if len(rows):
            left, top, right, bottom = columns[0], rows[0], columns[-1] + 1, rows[-1] + 1
            across, down = STEP / camera.WIDTH, STEP / camera.HEIGHT
            boxes.append([left * across, top * down, right * across, bottom * down])
            labels.append(LABELS.index(thing["shape"]))
    return Boxes(np.array(boxes, np.float32).reshape(-1, 4), np.array(labels, np.int64))
