"""Images of scenes like CLEVR's: the path tracer of `_tracer.py`, compiled by numba, of the extra `render`."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bcn.data.clevr_like import camera
from bcn.data.clevr_like.rules import SHAPES, color_of, radius_of
from bcn.data.clevr_like.scene import LIGHTS
from bcn.errors import BcnError, install_extra

LIGHT_COLORS = ((4.184, 3.867, 3.320), (1.164, 1.262, 1.590), (2.240, 2.229, 2.203))
"""red, green and blue of key, fill and back light on the ground: warm, cool and white"""
MAX_SAMPLES, MIN_SAMPLES, MAX_ERROR = 32, 8, 0.016
"""samples of a pixel, and the standard error of the square root of its radiance at which it needs no more"""
SMOOTH_RADIUS = 2
"""pixels to either side over which indirect light is averaged"""


def require_tracer() -> Any:
    """The compiled tracer, or one line that says what to install."""
    try:
        from bcn.data.clevr_like import _tracer as tracer
    except ImportError as error:
        raise BcnError(f"rendering needs {error.name}, which is not installed: {install_extra('render')}") from error
    return tracer


def render_scene(scene: dict[str, Any], *, width: int = 128, height: int = 128) -> np.ndarray:
    """The image of a scene, (height, width, 3) uint8. Whatever the size, the field of view is that of 480 x 320.

    The camera of an original scene, which is not recorded, is recovered from its pixel coordinates.
    """
    tracer = require_tracer()
    eye = camera_of(scene)
    direct, indirect, surface = (np.empty((height, width, channels)) for channels in (3, 3, 4))
    tracer.render(
        direct,
        indirect,
        surface,
        _objects(scene, tracer),
        np.array(_lights(scene.get("lights") or LIGHTS, tracer)),
        eye,
        *camera.axes(eye),
        camera.FOCAL / camera.WIDTH,
        MAX_SAMPLES,
        MIN_SAMPLES,
        MAX_ERROR,
        scene["image_index"],
    )
    tracer.add_indirect(direct, indirect, surface, SMOOTH_RADIUS)
    light = direct.clip(0.0, 1.0)
    srgb = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    return np.asarray((255 * srgb).round(), np.uint8)


class Survey(NamedTuple):
    """What the centre of each pixel shows."""

    number: np.ndarray
    """(height, width) int64: which object of the scene; negative where there is none"""
    depth: np.ndarray
    """(height, width) distance from the camera along its axis, as in `pixel_coords`; infinity where nothing is"""


def survey_scene(scene: dict[str, Any], *, width: int = 128, height: int = 128) -> Survey:
    """The objects and the depth in the image of a scene: one ray through the centre of each pixel."""
    tracer = require_tracer()
    eye = camera_of(scene)
    number, depth = np.empty((height, width), np.int64), np.empty((height, width))
    tracer.survey(number, depth, _objects(scene, tracer), eye, *camera.axes(eye), camera.FOCAL / camera.WIDTH)
    return Survey(number, np.where(number == tracer.SKY, np.inf, depth))


def camera_of(scene: dict[str, Any]) -> np.ndarray:
    """Where the camera of a scene stands."""
    return np.array(scene.get("camera") or camera.locate(scene["objects"]))


def _objects(scene: dict[str, Any], tracer: Any) -> np.ndarray:
    return np.array([_object(thing, tracer.BOUND) for thing in scene["objects"]])


def _object(thing: dict[str, Any], bound: Sequence[float]) -> list[float]:
    x, y, z = thing["3d_coords"]
    radius, shape, angle = radius_of(thing), SHAPES.index(thing["shape"]), thing["rotation"]
    color = [channel / 255 for channel in color_of(thing)]
    metal = float(thing["material"] == "metal")
    return [shape, x, y, z, radius, math.cos(angle), math.sin(angle), metal, *color, (radius * bound[shape]) ** 2]


def _lights(positions: Sequence[Sequence[float]], tracer: Any) -> list[list[float]]:
    """Each light faces the origin."""
    rows = []
    for position, strength in zip(positions, LIGHT_COLORS, strict=True):
        length = math.sqrt(sum(c * c for c in position))
        face = [-c / length for c in position]
        sides = [tracer.EXTENT * c for c in tracer.orthonormal_basis(*face)]
        rows.append([*position, *face, *(channel / tracer.GROUND_ALBEDO for channel in strength), *sides])
    return rows
