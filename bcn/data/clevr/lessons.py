"""Lessons: simple questions about the images of a training split, to be asked before its own.

A relation network that is asked everything at once answers by the kind of a question alone for a long time; one that is
asked few things at first, in few words, begins to look sooner. A lesson is read as a split is, "lesson-1" to
"lesson-6", but no file holds it: its questions are made from the scenes. All but the last always use the same words.

1. How many things there are of each size and material, and of six of the colors.
2. Size, material and shape of a thing that is the only one of its color, and how many things are left of it.
3. The same, left and right of it.
4. The same, left and right of it, in front of it and behind it.
5. Whether there are more, fewer or as many things of one color as of another, and whether two things, each the only
   one of its color, have the same size, material and shape.
6. What lesson 4 asks, and everything that names objects by their own attributes, not by other objects: ten questions
   about each image, made as those of clevr-like-v1 are.

Most need what the one before taught, and ask it again: whoever cannot find the red thing cannot say what is left of it.
Places are asked for early, before the network has learned that they do not matter.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

from bcn.data.clevr import phrase
from bcn.data.clevr.layout import Asked, question_file, read_questions, stream, training_split
from bcn.data.clevr.phrase import Link, Noun
from bcn.data.clevr.program import answer, kind_of
from bcn.data.clevr.question import COMPARISONS, FAMILIES, Scene, Scope, make_questions
from bcn.data.clevr.scene import ATTRIBUTES, RELATIONS
from bcn.errors import BcnError

EDITION = 6
"""counts up when a lesson changes, so that none is read from a cache that holds another"""
SIX = 6
"""of eight colors: with all of them, and shapes, materials are not learned; with three of them, colors are not"""
_PLAIN = Scope(tuple(index for index, family in enumerate(FAMILIES) if family.forms == ("plain",)), stream=4)


def _ask(scene: Scene, kinds: Iterable[str], *nouns: Noun) -> Iterator[dict[str, Any]]:
    """A question of each kind, in the first of the words that there are for it."""
    for kind in kinds:
        program = phrase.program(kind, *nouns)
        text = phrase.sentence(kind, *nouns, choose=itemgetter(0))
        yield {"question": text, "answer": answer(program, scene), "program": program}


def _colors(scene: Scene, *, alone: bool) -> list[Noun]:
    """The things of each color that there is; `alone`: those that are the only one of theirs."""
    there = Counter(thing["color"] for thing in scene["objects"])
    return [Noun((("color", color),)) for color in sorted(there) if there[color] == 1 or not alone]


def _pairs(scene: Scene, nouns: list[Noun]) -> Iterator[tuple[Noun, Noun]]:
    """Each with one of the others, which one changes from image to image."""
    for place, noun in enumerate(nouns if len(nouns) > 1 else ()):
        yield noun, nouns[(place + 1 + scene["image_index"] % (len(nouns) - 1)) % len(nouns)]


def _counted(scene: Scene) -> Iterator[dict[str, Any]]:
    colors, start = ATTRIBUTES["color"], scene["image_index"] * SIX
    asked = {
        "size": ATTRIBUTES["size"],
        "material": ATTRIBUTES["material"],
        "color": [colors[(start + place) % len(colors)] for place in range(SIX)],
    }
    for attribute, values in asked.items():
        for value in values:
            yield from _ask(scene, ["count"], Noun(((attribute, value),)))


def _told(scene: Scene, relations: Iterable[str]) -> Iterator[dict[str, Any]]:
    """What each thing is like that is the only one of its color, and how many things are on these sides of it."""
    for noun in _colors(scene, alone=True):
        yield from _ask(scene, ["query_size", "query_material", "query_shape"], noun)
        for relation in relations:
            yield from _ask(scene, ["count"], Noun((), (Link(relation, noun),)))


def _compared(scene: Scene) -> Iterator[dict[str, Any]]:
    for pair in _pairs(scene, _colors(scene, alone=False)):
        yield from _ask(scene, COMPARISONS, *pair)
    for pair in _pairs(scene, _colors(scene, alone=True)):
        yield from _ask(scene, ["equal_size", "equal_material", "equal_shape"], *pair)


LESSONS: dict[str, Callable[[Scene], Iterable[dict[str, Any]]]] = {
    "lesson-1": _counted,
    "lesson-2": lambda scene: _told(scene, ["left"]),
    "lesson-3": lambda scene: _told(scene, ["left", "right"]),
    "lesson-4": lambda scene: _told(scene, RELATIONS),
    "lesson-5": _compared,
    "lesson-6": lambda scene: chain(_told(scene, RELATIONS), make_questions(scene, scope=_PLAIN)),
}


def source(directory: Path, split: str) -> Path:
    """The file that a split, or a lesson, comes from: its questions, or the scenes of the training split."""
    if split not in LESSONS:
        return question_file(directory, split)
    path = directory / "scenes" / f"CLEVR_{training_split(directory)}_scenes.json"
    if not path.is_file():
        raise BcnError(f"lessons are made from scenes, and {path} is not there: get it, or train with lessons=")
    return path


def read(directory: Path, split: str) -> Iterator[Asked]:
    """The questions of a split, or of a lesson, one after the other."""
    return _make(directory, split) if split in LESSONS else read_questions(directory, split)


def _make(directory: Path, lesson: str) -> Iterator[Asked]:
    """The questions of a lesson, with a progress bar."""
    from rich.console import Console
    from rich.progress import track

    path, split, number = source(directory, lesson), str(training_split(directory)), 0
    images = sum(1 for _ in stream(path, "scenes"))
    console = Console(stderr=True, quiet=images < 256)
    for scene in track(stream(path, "scenes"), f"making {lesson} for {images:,} images", images, console=console):
        for made in LESSONS[lesson](scene | {"split": split}):
            image = Path("images") / split / scene["image_filename"]
            yield Asked(image, made["question"], made["answer"], kind_of(made["program"]), number)
            number += 1
