"""Folders like a user's own: drawn shapes and letters with questions in free English, in several styles.

    python tests/helpers/drawn_shapes.py FOLDER STYLE [IMAGES] [SEED]

A style has its own canvas, shapes, letters, colours, fonts and wording, so that what is chosen on one of them can be
checked on another.
"""

import json
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from math import cos, hypot, pi, sin
from pathlib import Path
from typing import NamedTuple

import matplotlib
from PIL import Image, ImageDraw, ImageFilter, ImageFont

FONTS = Path(matplotlib.get_data_path()) / "fonts/ttf"
POLYGONS = {"triangle": (3, 0.0), "diamond": (4, 0.0), "pentagon": (5, 0.0), "hexagon": (6, 0.0), "square": (4, pi / 4)}
"""corners, and the angle of the first of them from the top"""


@dataclass(frozen=True)
class Style:
    colours: dict[str, tuple[int, int, int]]
    shapes: tuple[str, ...]
    letters: str
    fonts: tuple[str, ...]
    backgrounds: tuple[tuple[int, int, int], ...]
    sides: tuple[int, int]
    """smallest and largest width and height of an image; they differ from image to image"""
    sizes: tuple[float, float]
    """smallest and largest width of a shape, as a share of the shorter side"""
    wording: dict[str, tuple[str, ...]]
    jitter: int = 0
    """by how much a channel of a colour varies"""
    noise: float = 0.0
    square_images: bool = True


class Thing(NamedTuple):
    name: str
    """a shape or "letter A" """
    colour: str
    x: float
    y: float
    size: float

    @property
    def noun(self) -> str:
        return self.name.removeprefix("letter ")


BRIGHT = {
    "red": (220, 40, 40), "green": (40, 170, 60), "blue": (50, 80, 220), "yellow": (235, 210, 40),
    "purple": (140, 60, 180), "orange": (240, 140, 30),
}  # fmt: skip
WEB = {"red": (255, 0, 0), "green": (0, 128, 0), "blue": (0, 0, 255), "black": (0, 0, 0), "pink": (255, 105, 180)}
MUTED = {
    "red": (190, 60, 70), "green": (90, 150, 80), "blue": (70, 110, 180), "brown": (120, 80, 50),
    "cyan": (80, 190, 200), "grey": (140, 140, 140), "yellow": (210, 190, 90),
}  # fmt: skip

PLAIN = {
    "exist": ("Is there a {a}?", "Is there any {a}?", "Can you see a {a}?"),
    "colour": ("What colour is the {n}?", "Which colour does the {n} have?"),
    "name": ("What is the {c} thing?", "Which shape or letter is {c}?"),
    "count": ("How many things are there?", "How many {c} things are there?", "How many objects are {c}?"),
    "left": ("Is the {a} left of the {b}?", "Is the {a} to the left of the {b}?"),
    "right": ("Is the {a} right of the {b}?", "Is the {a} to the right of the {b}?"),
    "above": ("Is the {a} above the {b}?", "Is the {a} higher than the {b}?"),
    "below": ("Is the {a} below the {b}?", "Is the {a} lower than the {b}?"),
    "closest": ("What is closest to the {a}?", "What colour is the thing closest to the {a}?"),
}
CHATTY = {
    "exist": ("does the picture show a {a}", "is a {a} in the image?", "do you see some {a} here?"),
    "colour": ("the {n} is of which color?", "tell me the color of the {n}", "what color has the {n}"),
    "name": ("what kind of object is {c}?", "name the {c} object"),
    "count": ("count the {c} objects", "how many {c} ones do you see?", "count all objects"),
    "left": ("is the {a} on the left side of the {b}?", "does the {a} lie left of the {b}?"),
    "right": ("is the {a} on the right side of the {b}?", "does the {a} lie right of the {b}?"),
    "above": ("is the {a} over the {b}?", "does the {a} lie above the {b}?"),
    "below": ("is the {a} under the {b}?", "does the {a} lie beneath the {b}?"),
    "closest": ("which object is nearest to the {a}?", "what color is the nearest neighbour of the {a}?"),
}
TERSE = {
    "exist": ("any {a}?", "is there a {a} anywhere in this picture?"),
    "colour": ("colour of the {n}?", "what is the colour of the {n} in the picture?"),
    "name": ("what is {c}?", "which item is the {c} one?"),
    "count": ("how many items?", "number of {c} items?", "how many items in the picture are {c}?"),
    "left": ("{a} left of {b}?", "looking at the picture, is the {a} further left than the {b}?"),
    "right": ("{a} right of {b}?", "looking at the picture, is the {a} further right than the {b}?"),
    "above": ("{a} above {b}?", "is the {a} further up than the {b}?"),
    "below": ("{a} below {b}?", "is the {a} further down than the {b}?"),
    "closest": ("what is next to the {a}, closest of all?", "which colour is closest to the {a}?"),
}
STYLES = {
    "plain": Style(
        BRIGHT, ("circle", "square", "triangle"), "ABCDE", ("DejaVuSans-Bold.ttf",), ((255, 255, 255),),
        (64, 100), (0.18, 0.28), PLAIN,
    ),
    "chatty": Style(
        MUTED, ("circle", "square", "triangle", "star", "cross"), "AHKSTX",
        ("DejaVuSans.ttf", "DejaVuSerif-Bold.ttf", "DejaVuSansMono-Bold.ttf"),
        ((245, 240, 225), (225, 235, 245), (250, 250, 250)), (64, 100), (0.16, 0.26), CHATTY, 18, 4.0, False,
    ),
    "terse": Style(
        WEB, ("circle", "square", "triangle", "diamond", "hexagon"), "BEFGMRZ",
        ("STIXGeneralBol.ttf", "cmb10.ttf", "DejaVuSansMono.ttf"), ((230, 230, 230), (255, 255, 240)),
        (64, 100), (0.17, 0.30), TERSE, 10, 2.0, False,
    ),
}  # fmt: skip


def write_drawn_shapes(folder: Path, style: str, *, images: int = 1500, seed: int = 0, questions: float = 8.45) -> None:
    """Write images and `questions.jsonl`, without splits.

    Args:
        questions: about an image, on average.
    """
    rng, chosen = random.Random(f"{style} {seed}"), STYLES[style]
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for number in range(images):
        things, picture = _draw(chosen, rng)
        file = f"{number:05}.{rng.choice(['png', 'jpg'])}"
        picture.save(folder / file, quality=90)  # which PNG ignores
        count = int(questions) + (rng.random() < questions % 1)
        lines += [{"image": file, **entry} for entry in _ask(things, chosen, rng, count)]
    (folder / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def _draw(style: Style, rng: random.Random) -> tuple[list[Thing], Image.Image]:
    width = rng.randint(*style.sides)
    height = width if style.square_images else rng.randint(*style.sides)
    short = min(width, height)
    background = rng.choice(style.backgrounds)
    names = [*style.shapes, *(f"letter {letter}" for letter in style.letters)]
    things: list[Thing] = []
    for _ in range(rng.randint(2, 5)):
        for _ in range(100):
            size = short * rng.uniform(*style.sizes)
            x, y = rng.uniform(size / 2, width - size / 2), rng.uniform(size / 2, height - size / 2)
            if all(hypot(x - other.x, y - other.y) > 0.62 * (size + other.size) for other in things):
                things.append(Thing(rng.choice(names), rng.choice([*style.colours]), x, y, size))
                break
    scale = 4
    image = Image.new("RGB", (width * scale, height * scale), background)
    for thing in things:
        jittered = tuple(
            max(0, min(255, part + rng.randint(-style.jitter, style.jitter))) for part in style.colours[thing.colour]
        )
        _draw_thing(ImageDraw.Draw(image), thing, jittered, rng.choice(style.fonts), scale)
    image = image.resize((width, height), Image.Resampling.LANCZOS)
    if style.noise:
        noise = Image.effect_noise((width, height), 2 * style.noise).filter(ImageFilter.GaussianBlur(0.5))
        image = Image.blend(image, noise.convert("RGB"), 0.06)
    return things, image


def _draw_thing(draw: ImageDraw.ImageDraw, thing: Thing, fill: tuple[int, ...], font: str, scale: int) -> None:
    x, y, radius = thing.x * scale, thing.y * scale, thing.size * scale / 2
    if thing.name.startswith("letter"):
        draw.text((x, y), thing.noun, fill, ImageFont.truetype(str(FONTS / font), 2.3 * radius), "mm")
    elif thing.name == "circle":
        draw.ellipse([x - radius, y - radius, x + radius, y + radius], fill)
    elif thing.name == "cross":
        arm = radius * 0.35
        draw.rectangle([x - arm, y - radius, x + arm, y + radius], fill)
        draw.rectangle([x - radius, y - arm, x + radius, y + arm], fill)
    else:
        corners, turn = (10, 0.0) if thing.name == "star" else POLYGONS[thing.name]
        radii = [radius * (0.45 if thing.name == "star" and corner % 2 else 1.0) for corner in range(corners)]
        angles = [turn + 2 * pi * corner / corners for corner in range(corners)]
        draw.polygon([(x + r * sin(a), y - r * cos(a)) for r, a in zip(radii, angles, strict=True)], fill)


def _ask(things: list[Thing], style: Style, rng: random.Random, count: int) -> list[dict[str, str]]:
    """Different questions about a scene whose answers are certain."""
    makers: dict[str, Callable[[], tuple[str, str, str] | None]] = {
        "exist": lambda: _exist(things, style, rng),
        "attribute": lambda: _attribute(things, style, rng),
        "count": lambda: _count(things, style, rng),
        "side": lambda: _side(things, style, rng),
        "closest": lambda: _closest(things, style, rng),
    }
    asked: dict[str, dict[str, str]] = {}
    for _ in range(200):
        if len(asked) == count:
            break
        made = makers[rng.choice([*makers])]()
        if made is not None:
            kind, question, answer = made
            asked[question] = {"question": question, "answer": answer, "kind": kind}
    return list(asked.values())


def _unique(things: list[Thing], rng: random.Random) -> list[tuple[Thing, str]]:
    """The things that a phrase names and no other, with that phrase."""
    named = []
    for thing in things:
        phrases = [f"{thing.colour} {thing.noun}"] * 2 + [thing.name, f"{thing.colour} {thing.name}"]
        matching = {
            phrase: sum(phrase in {f"{o.colour} {o.noun}", o.name, f"{o.colour} {o.name}"} for o in things)
            for phrase in phrases
        }
        if certain := [phrase for phrase in phrases if matching[phrase] == 1]:
            named.append((thing, rng.choice(certain)))
    return named


def _exist(things: list[Thing], style: Style, rng: random.Random) -> tuple[str, str, str]:
    if rng.random() < 0.5:
        thing = rng.choice(things)
        name, colour = thing.noun, thing.colour
    else:
        name, colour = rng.choice([*style.shapes, *style.letters]), rng.choice([*style.colours])
    there = any(thing.noun == name and thing.colour == colour for thing in things)
    return "exist", rng.choice(style.wording["exist"]).format(a=f"{colour} {name}"), "yes" if there else "no"


def _attribute(things: list[Thing], style: Style, rng: random.Random) -> tuple[str, str, str] | None:
    thing = rng.choice(things)
    if rng.random() < 0.5:
        if sum(other.name == thing.name for other in things) > 1:
            return None
        return "colour", rng.choice(style.wording["colour"]).format(n=thing.noun), thing.colour
    if sum(other.colour == thing.colour for other in things) > 1:
        return None
    return "name", rng.choice(style.wording["name"]).format(c=thing.colour), thing.noun


def _count(things: list[Thing], style: Style, rng: random.Random) -> tuple[str, str, str]:
    colour, words = rng.choice([*style.colours, *(thing.colour for thing in things)]), style.wording["count"]
    template = rng.choice(words)
    number = sum(thing.colour == colour for thing in things) if "{c}" in template else len(things)
    return "count", template.format(c=colour), str(number)


def _side(things: list[Thing], style: Style, rng: random.Random) -> tuple[str, str, str] | None:
    named = _unique(things, rng)
    if len(named) < 2:
        return None
    (one, a), (other, b) = rng.sample(named, 2)
    side = rng.choice(["left", "right", "above", "below"])
    ahead = {"left": other.x - one.x, "right": one.x - other.x, "above": other.y - one.y, "below": one.y - other.y}
    if abs(ahead[side]) < 3:
        return None
    return "side", rng.choice(style.wording[side]).format(a=a, b=b), "yes" if ahead[side] > 0 else "no"


def _closest(things: list[Thing], style: Style, rng: random.Random) -> tuple[str, str, str] | None:
    named = _unique(things, rng)
    if not named or len(things) < 3:
        return None
    thing, phrase = rng.choice(named)
    others = sorted((hypot(o.x - thing.x, o.y - thing.y), o) for o in things if o is not thing)
    if others[1][0] - others[0][0] < 2:
        return None
    template = rng.choice(style.wording["closest"])
    colour = "colour" in template or "color" in template
    return "closest", template.format(a=phrase), others[0][1].colour if colour else others[0][1].noun


if __name__ == "__main__":
    _, target, name, *numbers = sys.argv
    images, seed = [*map(int, numbers), *(1500, 0)[len(numbers) :]]
    write_drawn_shapes(Path(target), name, images=images, seed=seed)
