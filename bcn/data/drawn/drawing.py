"""Pictures of drawn-v1; pixels are Pillow's, and may differ a little between its versions."""

from functools import cache
from io import BytesIO
from math import cos, pi, radians, sin

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from bcn.data.decode import decode_image
from bcn.data.drawn.scene import SHAPES, Scene, Thing
from bcn.data.random import RandomStream

SCALE = 2
"""pixels are drawn as squares of so many, and averaged"""
CORNERS = {"triangle": 3, "diamond": 4, "square": 4, "pentagon": 5, "hexagon": 6, "star": 10}


def draw(scene: Scene, rng: RandomStream) -> Image.Image:
    """The picture, of the canvas's size; some are soft, noisy, or have been through JPEG."""
    image = Image.new("RGB", (scene.width * SCALE, scene.height * SCALE), scene.ground)
    canvas = ImageDraw.Draw(image)
    for thing in scene.things:
        _draw_thing(canvas, thing)
    image = image.reduce(SCALE)
    if rng.uniform() < 0.15:
        image = image.filter(ImageFilter.GaussianBlur(rng.uniform(0.3, 0.9)))
    if rng.uniform() < 0.25:
        noise = np.random.default_rng(rng.bits()).normal(0, rng.uniform(2, 10), (scene.height, scene.width, 3))
        image = Image.fromarray((np.asarray(image) + noise).clip(0, 255).astype(np.uint8))
    if rng.uniform() < 0.35:
        data = BytesIO()
        image.save(data, "JPEG", quality=50 + rng.integer(46))
        image = decode_image(data)
    return image


def _draw_thing(canvas: ImageDraw.ImageDraw, thing: Thing) -> None:
    x, y, radius = thing.x * SCALE, thing.y * SCALE, thing.size * SCALE / 2
    if thing.name not in SHAPES:
        canvas.text((x, y), thing.name, thing.rgb, _font(round(2.3 * radius)), "mm", stroke_width=round(radius / 14))
    elif thing.name == "ring":
        canvas.ellipse([x - radius, y - radius, x + radius, y + radius], None, thing.rgb, round(0.45 * radius))
    elif thing.name == "circle":
        canvas.ellipse([x - radius, y - radius, x + radius, y + radius], thing.rgb)
    else:
        turn = radians(thing.angle)
        canvas.polygon(
            [
                (x + radius * (u * cos(turn) - v * sin(turn)), y + radius * (u * sin(turn) + v * cos(turn)))
                for u, v in outline(thing.name)
            ],
            thing.rgb,
        )


@cache
def outline(shape: str) -> tuple[tuple[float, float], ...]:
    """The corners of a shape around (0, 0), x to the right and y down, within a distance of 1."""
    if shape == "rectangle":
        return ((-0.95, -0.5), (0.95, -0.5), (0.95, 0.5), (-0.95, 0.5))
    if shape == "cross":
        arm = 0.34
        quarter = ((arm, -1.0), (arm, -arm), (1.0, -arm))
        turns = ((1, 0), (0, 1), (-1, 0), (0, -1))
        return tuple((c * u - s * v, s * u + c * v) for c, s in turns for u, v in quarter)
    steps = [2 * pi * step / 40 for step in range(40)]
    if shape == "oval":
        return tuple((cos(t), 0.58 * sin(t)) for t in steps)
    if shape == "heart":
        return tuple((sin(t) ** 3, -(13 * cos(t) - 5 * cos(2 * t) - 2 * cos(3 * t) - cos(4 * t)) / 16.5) for t in steps)
    corners, first = CORNERS[shape], pi / 4 if shape == "square" else 0.0
    inner = 0.45 if shape == "star" else 1.0
    angles = [first + 2 * pi * corner / corners for corner in range(corners)]
    return tuple(
        (sin(angle) * (inner if corner % 2 else 1), -cos(angle) * (inner if corner % 2 else 1))
        for corner, angle in enumerate(angles)
    )


@cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)
