"""What scenes are made of: which shapes and colors, and how many objects. The default is CLEVR's."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bcn.data.vqa.clevr import ATTRIBUTES
from bcn.errors import BcnError, did_you_mean

SHAPES = (*ATTRIBUTES["shape"], "cone", "torus")
"""all that can be rendered, in the order of the tracer's numbers"""
MATERIALS = ATTRIBUTES["material"]
SIZES = {"large": 0.7, "small": 0.35}
"""radius of each size; a cube, a cylinder and a cone are as high as they are wide"""
TUBE = 0.35
"""radius of a torus's tube, in units of its radius; it lies on the ground, so its centre is as high"""
COLORS = {
    "gray": (87, 87, 87),
    "red": (173, 35, 35),
    "blue": (42, 75, 215),
    "green": (29, 105, 20),
    "brown": (129, 74, 25),
    "purple": (129, 38, 192),
    "cyan": (41, 208, 208),
    "yellow": (255, 238, 51),
}
EXTENT = 3.0
"""objects stand at x and y from -EXTENT to EXTENT"""
MAX_OBJECTS = 20
MAX_COLORS = 64

Rgb = tuple[int, int, int]


@dataclass(frozen=True)
class SceneRules:
    """The choice that objects are drawn from."""

    shapes: tuple[str, ...] = ATTRIBUTES["shape"]
    colors: tuple[tuple[str, Rgb], ...] = tuple(COLORS.items())
    objects: tuple[int, int] = (3, 10)
    """fewest and most of a scene"""

    @property
    def attributes(self) -> dict[str, tuple[str, ...]]:
        """The values of shape and color where they are not CLEVR's."""
        values = {"shape": self.shapes, "color": tuple(name for name, _ in self.colors)}
        return {name: values[name] for name in values if values[name] != ATTRIBUTES[name]}


CLEVR_RULES = SceneRules()


def radius_of(thing: dict[str, Any]) -> float:
    """The radius of an object, from the height of its centre."""
    height = float(thing["3d_coords"][2])
    return height / TUBE if thing["shape"] == "torus" else height


def color_of(thing: dict[str, Any]) -> Rgb:
    """Red, green and blue of an object, which scenes state where the color is not one of CLEVR's."""
    red, green, blue = thing.get("rgb") or COLORS[thing["color"]]
    return red, green, blue


def values_of(scene: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """The values of each attribute that objects of a scene were drawn from; CLEVR's, unless it states others."""
    return ATTRIBUTES | {name: tuple(values) for name, values in scene.get("attributes", {}).items()}


def parse_rules(shapes: str, colors: str, objects: str, *, reserved: Callable[[str], bool]) -> SceneRules:
    """Rules from the words of a command line: "cube,cone", "red,teal:#2aa198", "3-20".

    >>> parse_rules("cube,cone", "red,teal:#2aa198", "5", reserved=lambda name: False).colors
    (('red', (173, 35, 35)), ('teal', (42, 161, 152)))

    Args:
        reserved: whether a word means something else in questions, so that no color may have it for a name.
    """
    return SceneRules(_parse_shapes(shapes), _parse_colors(colors, reserved), _parse_objects(objects))


def _parse_shapes(text: str) -> tuple[str, ...]:
    names = _distinct("shapes", text)
    for name in names:
        if name not in SHAPES:
            raise did_you_mean("shape", name, SHAPES)
    return tuple(names)


def _parse_colors(text: str, reserved: Callable[[str], bool]) -> tuple[tuple[str, Rgb], ...]:
    colors: dict[str, Rgb] = {}
    for part in _distinct("colors", text):
        match = re.fullmatch(r"([a-z]{1,32})(?::#([0-9a-f]{6}))?", part)
        if not match or not (match[2] or match[1] in COLORS):
            raise BcnError(
                f"--colors {part}: accepted are {', '.join(COLORS)}, and others with red, green and blue, "
                "as in teal:#2aa198, all in lower case"
            )
        if match[1] in colors or (match[1] not in COLORS and reserved(match[1])):
            taken = "stands there twice" if match[1] in colors else "has another meaning in questions"
            raise BcnError(f"--colors {part}: {match[1]} {taken}; give the color another name")
        hexadecimal = match[2]
        colors[match[1]] = COLORS[match[1]] if hexadecimal is None else _parse_rgb(hexadecimal)
    if len(colors) > MAX_COLORS:
        raise BcnError(f"--colors: {len(colors)} were given; accepted are up to {MAX_COLORS}")
    return tuple(colors.items())


def _parse_rgb(text: str) -> Rgb:
    red, green, blue = bytes.fromhex(text)
    return red, green, blue


def _parse_objects(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"([0-9]{1,3})(?:-([0-9]{1,3}))?", text)
    fewest, most = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not 1 <= fewest <= most <= MAX_OBJECTS:
        raise BcnError(f"--objects {text}: give how many a scene has, 1 to {MAX_OBJECTS}, or from and to, as in 3-20")
    return fewest, most


def _distinct(what: str, text: str) -> list[str]:
    names = text.split(",")
    if "" in names or len(set(names)) < len(names):
        raise BcnError(f"--{what} {text}: give different names with commas between them, without spaces")
    return names
