"""CLEVR's camera: at (7.48, -6.51, 5.34), each coordinate jittered by up to 0.5, looking at the origin.

The numbers were fitted to the original scenes: one position for each scene, and nothing else free, reproduces every
stored pixel to its rounding.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

WIDTH, HEIGHT = 480, 320
FOCAL = WIDTH * 35 / 32
POSITION = (7.481, -6.508, 5.344)
JITTER = 0.5


def axes(position: ArrayLike) -> tuple[Array, Array, Array]:
    """The camera's right, up and forward axes; it looks at the origin, without roll."""
    forward = -np.asarray(position, float)
    forward /= np.sqrt((forward * forward).sum())
    right = np.array([forward[1], -forward[0], 0.0])
    right /= np.sqrt((right * right).sum())
    up = np.array([-right[1] * -forward[2], right[0] * -forward[2], right[0] * forward[1] - right[1] * forward[0]])
    return right, up, forward


def directions(position: ArrayLike = POSITION) -> dict[str, list[float]]:
    """The relations' directions on the ground. CLEVR takes them from the camera before its jitter.

    >>> [round(number, 4) for number in directions()["behind"]]
    [-0.7545, 0.6563, 0.0]
    """
    right = axes(position)[0]
    x, y = float(right[0]), float(right[1])
    return {
        "right": [x, y, 0.0],
        "left": [-x, -y, 0.0],
        "behind": [-y, x, 0.0],
        "front": [y, -x, 0.0],
        "above": [0.0, 0.0, 1.0],
        "below": [0.0, 0.0, -1.0],
    }


def project(position: ArrayLike, points: ArrayLike) -> Array:
    """Column, row (of 480 x 320 pixels) and depth of each point."""
    right, up, forward = axes(position)
    offset = np.asarray(points, float) - np.asarray(position, float)
    depth = (offset * forward).sum(-1)
    column = WIDTH / 2 + FOCAL * (offset * right).sum(-1) / depth
    row = HEIGHT / 2 - FOCAL * (offset * up).sum(-1) / depth
    return np.stack([column, row, depth], -1)


def locate(objects: Sequence[dict[str, Any]]) -> list[float]:
    """The position of the camera, from the `3d_coords` and `pixel_coords` of an original scene (Gauss-Newton)."""
    points = np.array([thing["3d_coords"] for thing in objects])
    seen = np.array([thing["pixel_coords"] for thing in objects], float)
    weight = np.array([1.0, 1.0, 1000.0])  # pixels are rounded, depths are not

    def residual(position: Array) -> Array:
        return np.ravel((project(position, points) - seen) * weight)

    position, step = np.array(POSITION), 1e-5
    for _ in range(20):
        columns = [(residual(position + e) - residual(position - e)) / (2 * step) for e in np.eye(3) * step]
        position = position - np.linalg.lstsq(np.stack(columns, 1), residual(position), rcond=None)[0]
    return [float(number) for number in position]
