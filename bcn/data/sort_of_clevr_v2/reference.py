"""The reference implementation of Sort-of-CLEVR v2: one scene, one image, one question at a time, in plain Python.

It follows the specification (docs/reference/sort-of-clevr-v2.md) and shares no code with the generator. The tests
compare the generator's samples in exact pictures with it byte by byte.
"""

import math
from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import NamedTuple

import torch

from bcn.data.dataset import Batch
from bcn.data.sort_of_clevr.reference import Thing, draw_things, word

KINDS = ["shape", "left", "above", "closest", "furthest", "count", "between", "line", "obtuse"]
ANSWERS = ["yes", "no", "square", "circle", *map(str, range(13))]


class Named(NamedTuple):
    colour: int
    thing: Thing


class Question(NamedTuple):
    kind: str
    about: tuple[int, ...]
    """one object or two, in the order in which they are named"""
    answer: str
    key: int


def make_batch(stream: int, index: Iterable[int], *, objects: tuple[int, int]) -> Batch:
    """The samples of a split with sampled questions."""
    seeds = [word(stream, i) for i in index]
    scenes = [make_scene(seed, objects) for seed in seeds]
    asked = [sample(seed, scene) for seed, scene in zip(seeds, scenes, strict=True)]
    images = [draw_things([(colour, thing) for colour, thing in scene]) for scene in scenes]
    return Batch(
        image=torch.stack([torch.from_numpy(image) for image in images]),
        answer=torch.tensor([[ANSWERS.index(q.answer) if q else -100 for q in each] for each in asked]),
        question=torch.tensor(
            [[encode(s, q) if q else [0.0] * 22 for q in each] for s, each in zip(scenes, asked, strict=True)]
        ),
        kind=torch.tensor([[KINDS.index(q.kind) if q else 0 for q in each] for each in asked]),
    )


def make_scene(seed: int, objects: tuple[int, int]) -> list[Named]:
    fewest, most = objects
    number = fewest + ((word(seed, 1) >> 32) * (most - fewest + 1) >> 32)
    keys = sorted(word(seed, 2 + colour) & ~63 | colour for colour in range(6))
    colours = [key & 63 for key in keys] * 2
    circles = [bool(word(seed, 0) >> k & 1) for k in range(number)]
    if number > 10 and all(circles[k] == circles[k + 6] for k in range(number - 6)):
        circles[-1] = not circles[-1]
    scene: list[Named] = []
    for k in range(number):
        attempt = 0
        while True:
            bits = word(seed, 2048 + k + 12 * (attempt // 5)) >> 12 * (attempt % 5)
            x, y = bits & 63, bits >> 6 & 63
            thing = Thing(x + 5 + (x >= 32), y + 5 + (y >= 32), circles[k])
            if all(fits(thing, other, 12 if colour == colours[k] else 11) for colour, other in scene):
                break
            attempt += 1
        scene.append(Named(colours[k], thing))
    return scene


def fits(a: Thing, b: Thing, apart: int) -> bool:
    return abs(a.x - b.x) >= apart or abs(a.y - b.y) >= apart


def name(scene: list[Named], k: int) -> tuple[int, bool | None] | None:
    """Colour, and whether a circle where that is needed; None where it is not enough."""
    colour, thing = scene[k]
    same = [other.circle for i, (its, other) in enumerate(scene) if its == colour and i != k]
    if not same:
        return colour, None
    return None if thing.circle in same else (colour, thing.circle)


def encode(scene: list[Named], question: Question) -> list[float]:
    bits, kind = [0.0] * 22, KINDS.index(question.kind)
    for start, k in zip((0, 8), question.about, strict=False):
        its_name = name(scene, k)
        assert its_name is not None
        colour, circle = its_name
        bits[start + colour] = 1.0
        if circle is not None:
            bits[start + 6 + circle] = 1.0
    bits[16 + kind // 3] = bits[19 + kind % 3] = 1.0
    return bits


def sample(seed: int, scene: list[Named]) -> list[Question | None]:
    """Up to four questions of each kind, then None."""
    chosen: list[Question | None] = []
    for kind in KINDS:
        questions = sorted(all_questions(seed, scene, kind), key=lambda question: question.key)
        first: list[Question] = []
        if kind in ("between", "line"):
            first = [question for question in questions if question.answer not in ("0", "no")][:2]
            common = [question for question in questions if question.answer in ("0", "no")]
            rare = [question for question in questions if question.answer not in ("0", "no") and question not in first]
            questions = common + rare
        taken = (first + questions)[:4]
        chosen += taken + [None] * (4 - len(taken))
    return chosen


def all_questions(seed: int, scene: list[Named], kind: str) -> Iterator[Question]:
    """Those of a kind that name their objects and have a clear answer, by place."""
    first_word = 1024 + 100 * KINDS.index(kind)
    ternary = kind in ("between", "line", "obtuse")
    places: list[tuple[int, ...]] = [(k,) for k in range(len(scene))]
    if ternary:
        places = sorted(combinations(range(len(scene)), 2), key=lambda pair: pair[::-1])
    for place, about in enumerate(places):
        names = [name(scene, k) for k in about]
        if None in names or (kind == "shape" and names[0] is not None and names[0][1] is not None):
            continue
        answer = reply([thing for _, thing in scene], kind, about)
        if answer is not None:
            random = word(seed, first_word + place)
            key = (random & (1 << 62) - 1) >> 8 << 8 | place
            yield Question(kind, about[::-1] if ternary and random >> 8 & 1 else about, answer, key)


def reply(things: list[Thing], kind: str, about: tuple[int, ...]) -> str | None:
    """The answer, None where it is not clear."""
    it = things[about[0]]
    others = [thing for k, thing in enumerate(things) if k not in about]
    shapes = ["circle" if thing.circle else "square" for thing in others]
    own = "circle" if it.circle else "square"
    if kind == "shape":
        return own
    if kind in ("left", "above"):
        return "yes" if (it.x if kind == "left" else it.y) < 37 else "no"
    if kind == "count":
        return str(1 + shapes.count(own))
    if kind in ("closest", "furthest"):
        best = min if kind == "closest" else max
        away: dict[str, list[float]] = {}
        for other, shape in zip(others, shapes, strict=True):
            away.setdefault(shape, []).append(math.dist(it[:2], other[:2]))
        ranked = {shape: best(distances) for shape, distances in away.items()}
        if not ranked or (len(ranked) == 2 and abs(ranked["square"] - ranked["circle"]) < 2):
            return None
        return best(ranked, key=ranked.__getitem__)
    decide = {"between": in_box, "line": on_line, "obtuse": is_obtuse}[kind]
    verdicts = [decide(it, things[about[1]], other) for other in others]
    if kind == "line" and True in verdicts:
        return "yes"
    if None in verdicts:
        return None
    return "no" if kind == "line" else str(verdicts.count(True))


def in_box(a: Thing, b: Thing, c: Thing) -> bool | None:
    inside = min(a.x, b.x) < c.x < max(a.x, b.x) and min(a.y, b.y) < c.y < max(a.y, b.y)
    closed = min(a.x, b.x) <= c.x <= max(a.x, b.x) and min(a.y, b.y) <= c.y <= max(a.y, b.y)
    return None if closed and not inside else inside


def on_line(a: Thing, b: Thing, c: Thing) -> bool | None:
    along = ((c.x - a.x) * (b.x - a.x) + (c.y - a.y) * (b.y - a.y)) / ((b.x - a.x) ** 2 + (b.y - a.y) ** 2)
    along = min(max(along, 0), 1)
    away = math.dist((a.x + along * (b.x - a.x), a.y + along * (b.y - a.y)), c[:2])
    if abs(away - 4) < 1e-9:
        return True
    return True if away < 4 else None if away < 8 - 1e-9 else False


def is_obtuse(a: Thing, b: Thing, c: Thing) -> bool | None:
    acute = True
    for corner, one, other in ((a, b, c), (b, c, a), (c, a, b)):
        u, v = (one.x - corner.x, one.y - corner.y), (other.x - corner.x, other.y - corner.y)
        product, sides = u[0] * v[0] + u[1] * v[1], u[0] ** 2 + u[1] ** 2 + v[0] ** 2 + v[1] ** 2
        clear = product**2 >= 2 * sides
        if clear and product < 0:
            return True
        acute = acute and clear
    return False if acute else None
