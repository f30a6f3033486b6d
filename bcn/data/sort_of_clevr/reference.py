"""The reference implementation of Sort-of-CLEVR: one scene, one image and one question at a time, in plain Python.

It follows the specification (docs/reference/sort-of-clevr.md) and shares no code with the generator. The tests compare
the generator's samples with it byte by byte, and `bcn bench data` compares the speed.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image, ImageDraw

from bcn.data.dataset import Batch

RGB = [(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 156, 0), (128, 128, 128), (255, 255, 0)]
MASK = (1 << 64) - 1

DISC = Image.new("1", (11, 11))
for v in range(11):
    for u in range(11):
        DISC.putpixel((u, v), (u - 5) ** 2 + (v - 5) ** 2 <= 25)


class Thing(NamedTuple):
    x: int
    y: int
    circle: bool


class Sample(NamedTuple):
    image: np.ndarray
    questions: list[list[float]]
    answers: list[int]
    kinds: list[int]


def word(seed: int, number: int) -> int:
    z = (seed + (number + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def make_batch(version: str, stream: int, index: Iterable[int]) -> Batch:
    make = sample_legacy if version == "sort-of-clevr-legacy" else sample_v1
    samples = [make(stream, i) for i in index]
    return Batch(
        image=torch.stack([torch.from_numpy(sample.image) for sample in samples]),
        answer=torch.tensor([sample.answers for sample in samples]),
        question=torch.tensor([sample.questions for sample in samples]),
        kind=torch.tensor([sample.kinds for sample in samples]),
    )


def sample_v1(stream: int, index: int) -> Sample:
    seed = word(stream, index)
    scene = scene_v1(seed)
    asked = []
    for half in (0, 18):
        keys = sorted(word(seed, 8 + half + n) & ~63 | n for n in range(18))
        asked += [half + (key & 63) for key in keys[:10]]
    return Sample(draw(scene), [encode(n) for n in asked], [answer(scene, n) for n in asked], [n // 6 for n in asked])


def sample_legacy(stream: int, index: int) -> Sample:
    seed = word(stream, index)
    scene = scene_legacy(seed)
    asked = [((word(seed, 8 + n) >> 32) * 18 >> 32) + 18 * (n >= 10) for n in range(20)]
    answers = [answer(scene, n, own=999) for n in asked]
    return Sample(draw(scene), [encode(n) for n in asked], answers, [n // 6 for n in asked])


def scene_v1(seed: int) -> list[Thing]:
    circles = [bool(word(seed, 0) >> colour & 1) for colour in range(6)]
    attempt = 0
    while True:
        bits = word(seed, 64 + 2 * attempt) & (1 << 60) - 1 | word(seed, 65 + 2 * attempt) << 60
        scene = []
        for circle in circles:
            x, y = bits & 63, bits >> 6 & 63
            scene.append(Thing(x + 5 + (x >= 32), y + 5 + (y >= 32), circle))
            bits >>= 12
        if apart(scene) and clear(scene):
            return scene
        attempt += 1


def apart(scene: list[Thing]) -> bool:
    for i, a in enumerate(scene):
        for b in scene[:i]:
            if abs(a.x - b.x) < 11 and abs(a.y - b.y) < 11:
                return False
    return True


def clear(scene: list[Thing]) -> bool:
    for i, a in enumerate(scene):
        others = scene[:i] + scene[i + 1 :]
        squares = [math.dist(a[:2], b[:2]) for b in others if not b.circle]
        circles = [math.dist(a[:2], b[:2]) for b in others if b.circle]
        if squares and circles:
            for best in (min, max):
                if abs(best(squares) - best(circles)) < 1:
                    return False
    return True


def scene_legacy(seed: int) -> list[Thing]:
    scene: list[Thing] = []
    for colour in range(6):
        attempt = 0
        while True:
            bits = word(seed, 64 + 8 * attempt + colour)
            x, y = 5 + ((bits >> 32) * 65 >> 32), 5 + ((bits & 0xFFFFFFFF) * 65 >> 32)
            if all((x - b.x) ** 2 + (y - b.y) ** 2 >= 100 for b in scene):
                break
            attempt += 1
        scene.append(Thing(x, y, bool(word(seed, 0) >> colour & 1)))
    return scene


def draw(scene: list[Thing]) -> np.ndarray:
    return draw_things(enumerate(scene))


def draw_things(things: Iterable[tuple[int, Thing]]) -> np.ndarray:
    """Things, each with its colour."""
    image = Image.new("RGB", (75, 75), (255, 255, 255))
    pen = ImageDraw.Draw(image)
    for colour, thing in things:
        rgb = RGB[colour]
        if thing.circle:
            pen.bitmap((thing.x - 5, thing.y - 5), DISC, rgb)
        else:
            pen.rectangle((thing.x - 5, thing.y - 5, thing.x + 5, thing.y + 5), rgb)
    return np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1))


def encode(number: int) -> list[float]:
    bits = [0.0] * 11
    kind, colour = divmod(number, 6)
    bits[colour] = bits[6 + kind // 3] = bits[8 + kind % 3] = 1.0
    return bits


def answer(scene: list[Thing], number: int, own: int | None = None) -> int:
    kind, colour = divmod(number, 6)
    it = scene[colour]
    if kind == 0:
        return 3 if it.circle else 2
    if kind == 1:
        return 0 if it.x < 37.5 else 1
    if kind == 2:
        return 0 if it.y < 37.5 else 1
    if kind == 5:
        return 3 + sum(other.circle == it.circle for other in scene)
    squares = [(other.x - it.x) ** 2 + (other.y - it.y) ** 2 for other in scene]
    if kind == 3:
        squares[colour] = 1 << 20 if own is None else own
        best = squares.index(min(squares))
    else:
        best = squares.index(max(squares))
    return 3 if scene[best].circle else 2
