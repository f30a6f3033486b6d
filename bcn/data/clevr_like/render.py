"""Pictures of scenes, as CLEVR's: `bcn[render]` brings numba, which compiles the path tracer of `_tracer.py`."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bcn.data.clevr_like import camera
from bcn.data.clevr_like.scene import COLORS, LIGHTS, SHAPES
from bcn.errors import BcnError

STRENGTHS = ((4.184, 3.867, 3.320), (1.164, 1.262, 1.590), (2.240, 2.229, 2.203))
"""red, green and blue that key, fill and back light give the ground: a warm light, a cool one, a white one"""
SAMPLES, FEW, ERROR = 32, 8, 0.016
"""most and fewest samples of a pixel, and the standard error, of the square root of its light, at which it is done"""
REACH = 2
"""pixels to either side over which the light from around is averaged"""


def require_tracer() -> Any:
    """The compiled tracer, or one line that says what to install."""
    try:
        from bcn.data.clevr_like import _tracer as tracer
    except ImportError as error:
        raise BcnError(f"pictures need {error.name}, which is not installed: pip install 'bcn[render]'") from error
    return tracer


def render_scene(scene: dict[str, Any], *, width: int = 128, height: int = 128) -> np.ndarray:
    """The picture of a scene, (height, width, 3) uint8. Whatever the size, it shows what the 480 x 320 original would.

    An original scene, which does not say where its camera stood, is seen from where its pixel coordinates put it.
    """
    tracer = require_tracer()
    eye = np.array(scene.get("camera") or camera.locate(scene["objects"]))
    right, up, forward = camera.axes(eye)
    light, around, surface = (np.empty((height, width, channels)) for channels in (3, 3, 4))
    tracer.render(
        light,
        around,
        surface,
        np.array([_object(thing, tracer.BOUND) for thing in scene["objects"]]),
        np.array(_lights(scene.get("lights") or LIGHTS, tracer)),
        eye,
        right,
        up,
        forward,
        camera.FOCAL / camera.WIDTH,
        SAMPLES,
        FEW,
        ERROR,
        scene["image_index"],
    )
    tracer.smooth(light, around, surface, REACH)
    light = light.clip(0.0, 1.0)
    srgb = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    return np.asarray((255 * srgb).round(), np.uint8)


def _object(thing: dict[str, Any], bound: Sequence[float]) -> list[float]:
    x, y, radius = thing["3d_coords"]
    shape = SHAPES.index(thing["shape"])
    angle = thing["rotation"]
    color = [channel / 255 for channel in COLORS[thing["color"]]]
    metal = float(thing["material"] == "metal")
    return [shape, x, y, radius, radius, math.cos(angle), math.sin(angle), metal, *color, (radius * bound[shape]) ** 2]


def _lights(positions: Sequence[Sequence[float]], tracer: Any) -> list[list[float]]:
    """Each light faces the origin."""
    rows = []
    for position, strength in zip(positions, STRENGTHS, strict=True):
        length = math.sqrt(sum(c * c for c in position))
        face = [-c / length for c in position]
        sides = [tracer.EXTENT * c for c in tracer.frame(*face)]
        rows.append([*position, *face, *(channel / tracer.EARTH for channel in strength), *sides])
    return rows
