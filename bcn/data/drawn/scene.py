"""Scenes of drawn-v1: one to seven shapes and letters of twelve colours on a canvas of any light or dark colour."""

import colorsys
from math import hypot
from typing import NamedTuple

from bcn.data.random import RandomStream

HUES = {
    "red": (-10, 8, 0.70, 1.0, 0.65, 1.0),
    "orange": (22, 37, 0.75, 1.0, 0.85, 1.0),
    "yellow": (48, 58, 0.60, 1.0, 0.80, 1.0),
    "green": (85, 150, 0.40, 1.0, 0.40, 0.85),
    "cyan": (172, 192, 0.45, 1.0, 0.70, 1.0),
    "blue": (212, 245, 0.50, 1.0, 0.60, 1.0),
    "purple": (266, 290, 0.40, 1.0, 0.45, 0.85),
    "pink": (315, 345, 0.28, 0.62, 0.92, 1.0),
    "brown": (18, 32, 0.50, 0.85, 0.33, 0.52),
    "black": (0, 360, 0.00, 0.30, 0.00, 0.14),
    "grey": (0, 360, 0.00, 0.10, 0.42, 0.68),
    "white": (0, 360, 0.00, 0.05, 0.94, 1.0),
}
"""lowest and highest hue in degrees, saturation and value of each colour"""
COLOURS = tuple(HUES)
SHAPES = (
    "circle", "square", "triangle", "diamond", "pentagon", "hexagon", "star", "cross", "ring", "oval", "rectangle",
    "heart",
)  # fmt: skip
LETTERS = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
SIDES = (56, 144)
"""width and height of a canvas, in pixels"""
SIZES = (0.13, 0.34)
"""of a thing, as a share of the shorter side"""
NUMBERS = (1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 7)
"""of things in a scene, each as likely as it is listed"""
MOST = max(NUMBERS)
CONTRAST = 150
"""smallest sum of the differences in red, green and blue between a thing and the canvas"""

Rgb = tuple[int, int, int]


class Thing(NamedTuple):
    name: str
    """one of SHAPES or LETTERS"""
    colour: str
    rgb: Rgb
    x: float
    y: float
    size: float
    angle: float
    """in degrees"""


class Scene(NamedTuple):
    width: int
    height: int
    ground: Rgb
    things: tuple[Thing, ...]


def make_scene(rng: RandomStream) -> Scene:
    """A scene in which no two things touch.

    >>> len(make_scene(RandomStream(0, "train", 0)).things)
    1
    """
    width = SIDES[0] + rng.integer(SIDES[1] - SIDES[0] + 1)
    height = min(SIDES[1], max(SIDES[0], round(width * rng.uniform(0.75, 1.33)))) if rng.uniform() < 0.5 else width
    ground = _ground(rng)
    letters = rng.choice((0.0, 0.3, 0.5))
    few = rng.uniform() < 0.5  # of the colours, so that questions cannot rely on colours alone
    colours = tuple(rng.choice(COLOURS) for _ in range(3)) if few else COLOURS
    things: list[Thing] = []
    for _ in range(rng.choice(NUMBERS)):
        for _ in range(30):
            thing = _thing(rng, width, height, colours, letters)
            apart = all(
                hypot(thing.x - other.x, thing.y - other.y) > 0.62 * (thing.size + other.size) for other in things
            )
            if apart and sum(abs(a - b) for a, b in zip(thing.rgb, ground, strict=True)) >= CONTRAST:
                things.append(thing)
                break
    return Scene(width, height, ground, tuple(things)) if things else make_scene(rng)


def _thing(rng: RandomStream, width: int, height: int, colours: tuple[str, ...], letters: float) -> Thing:
    size = min(width, height) * rng.uniform(*SIZES)
    x, y = rng.uniform(size / 2, width - size / 2), rng.uniform(size / 2, height - size / 2)
    name = rng.choice(LETTERS if rng.uniform() < letters else SHAPES)
    colour = rng.choice(colours)
    low, high, *ranges = HUES[colour]
    hue, saturation, value = rng.uniform(low, high) % 360 / 360, rng.uniform(*ranges[:2]), rng.uniform(*ranges[2:])
    return Thing(name, colour, _rgb(hue, saturation, value), x, y, size, rng.uniform(-12, 12))


def _ground(rng: RandomStream) -> Rgb:
    """Mostly light: white, pale or grey; one in eight is dark."""
    value = rng.uniform(0.03, 0.25) if rng.uniform() < 0.125 else rng.choice((1.0, rng.uniform(0.72, 1.0)))
    return _rgb(rng.uniform(), rng.choice((0.0, rng.uniform(0, 0.12))), value)


def _rgb(hue: float, saturation: float, value: float) -> Rgb:
    red, green, blue = (round(255 * part) for part in colorsys.hsv_to_rgb(hue, saturation, value))
    return red, green, blue
