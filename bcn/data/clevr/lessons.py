"""Lessons: simple questions about the images of a training split, to be asked before its own.

A relation network that is asked everything at once answers by the kind of a question alone for a long time; one that is
asked few things at first, in few words, begins to look sooner. A lesson is read as a split is, "lesson-1" to
"lesson-7", but no file holds it: its questions are made from the scenes. The first five always use the same words.

1. How many things there are of each size and material, and of six of the colors.
2. Every kind of question in its simplest form, where a color names what is meant: counts, whether there is one, what it
   is like, comparisons of two, and how many things are left of it.
3. The same, left and right of it.
4. The same, left and right of it, in front of it and behind it.
5. The same, and the same kinds where any one attribute names what is meant.
6. The same, and ten questions about each image, made as those of clevr-like-v1 are, that name objects by their own
   attributes, not by other objects.
7. The same, and ten that name an object by at most one other.

The first lets the network see colors. From the second on all kinds are asked together: a kind that comes late finds a
network in which g is silent for it, and a sum of zeros has no gradient.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

from bcn.data.clevr import phrase
from bcn.data.clevr.layout import Asked, question_file, read_questions, read_scenes, training_split
from bcn.data.clevr.phrase import Link, Noun
from bcn.data.clevr.program import answer, kind_of
from bcn.data.clevr.question import COMPARISONS, FAMILIES, Scene, Scope, make_questions
from bcn.data.clevr.scene import ATTRIBUTES, RELATIONS
from bcn.errors import BcnError

EDITION = 9
"""counts up when a lesson changes, so that none is read from a cache that holds another"""
SIX = 6
"""of eight colors: with all of them, and shapes, materials are not learned; with three of them, colors are not"""
QUERIES = ("query_size", "query_shape", "query_material", "query_shape")
"""shapes are the hardest to see"""
EQUALS = ("equal_size", "equal_material", "equal_shape")


def _scope(*forms: str, stream: int) -> Scope:
    """Questions whose nouns have these forms alone."""
    families = (index for index, family in enumerate(FAMILIES) if set(family.forms) <= set(forms))
    return Scope(tuple(families), stream=stream)


_PLAIN, _ONE_HOP = _scope("plain", stream=4), _scope("plain", "one hop", stream=5)


def _ask(scene: Scene, kinds: Iterable[str], *nouns: Noun) -> Iterator[dict[str, Any]]:
    """A question of each kind, in the first of the words that there are for it."""
    for kind in kinds:
        program = phrase.program(kind, *nouns)
        text = phrase.sentence(kind, *nouns, choose=itemgetter(0))
        yield {"question": text, "answer": answer(program, scene), "program": program}


def _named(scene: Scene, attributes: Iterable[str], *, alone: bool) -> list[Noun]:
    """The things of each value of these attributes that there is; `alone`: each thing that is the only one, once."""
    meant: dict[tuple[int, ...], Noun] = {}
    nouns = []
    for attribute in attributes:
        for value in ATTRIBUTES[attribute]:
            things = tuple(place for place, thing in enumerate(scene["objects"]) if thing[attribute] == value)
            if things:
                nouns.append(Noun(((attribute, value),)))
                meant[things] = nouns[-1]
    return [noun for things, noun in meant.items() if len(things) == 1] if alone else nouns


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


def _by_turns(
    scene: Scene, kinds: Sequence[str], about: Iterable[tuple[Noun, ...]], number: int
) -> Iterator[dict[str, Any]]:
    """So many questions, each of another kind about another of these; the next image goes on where this one stops."""
    about, first = list(about), scene["image_index"] * number
    for place in range(min(number, len(about))):
        yield from _ask(scene, [kinds[(first + place) % len(kinds)]], *about[(first + place) % len(about)])


def _simple(scene: Scene, relations: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Every kind of question in its simplest form; relations to a thing that is the only one of its color."""
    alone = _named(scene, ["color"], alone=True)
    for attribute, number in (("color", 2), ("size", 1), ("material", 1)):
        yield from _by_turns(
            scene, ["count"], [(Noun(((attribute, value),)),) for value in ATTRIBUTES[attribute]], number
        )
    yield from _by_turns(scene, ["exist"], [(Noun((("color", color),)),) for color in ATTRIBUTES["color"]], 1)
    yield from _by_turns(scene, QUERIES, [(noun,) for noun in alone], 4)
    yield from _by_turns(scene, COMPARISONS, _pairs(scene, _named(scene, ["color"], alone=False)), 3)
    yield from _by_turns(scene, EQUALS, _pairs(scene, alone), 3)
    beside = [(Noun((), (Link(relation, noun),)),) for noun in alone for relation in relations]
    yield from _by_turns(scene, ["count"], beside, 5)


def _by_any(scene: Scene) -> Iterator[dict[str, Any]]:
    """The same kinds but for relations, where any one attribute names what is meant."""
    there = _named(scene, ATTRIBUTES, alone=False)
    yield from _by_turns(scene, ["count"], [(noun,) for noun in there], 3)
    yield from _by_turns(scene, COMPARISONS, _pairs(scene, there), 4)
    for attribute in ATTRIBUTES:
        alone = _named(scene, [other for other in ATTRIBUTES if other != attribute], alone=True)
        yield from _by_turns(scene, [f"query_{attribute}"], [(noun,) for noun in alone], 1)
        yield from _by_turns(scene, [f"equal_{attribute}"], _pairs(scene, alone), 1)


LESSONS: dict[str, Callable[[Scene], Iterable[dict[str, Any]]]] = {
    "lesson-1": _counted,
    "lesson-2": lambda scene: _simple(scene, ["left"]),
    "lesson-3": lambda scene: _simple(scene, ["left", "right"]),
    "lesson-4": lambda scene: _simple(scene, RELATIONS),
    "lesson-5": lambda scene: chain(_simple(scene, RELATIONS), _by_any(scene)),
    "lesson-6": lambda scene: chain(LESSONS["lesson-5"](scene), make_questions(scene, scope=_PLAIN)),
    "lesson-7": lambda scene: chain(LESSONS["lesson-6"](scene), make_questions(scene, scope=_ONE_HOP)),
}


def source(directory: Path, split: str) -> Path:
    """The file that a split, or a lesson, comes from: its questions, or the scenes of the training split."""
    return scene_file(directory) if split in LESSONS else question_file(directory, split)


def scene_file(directory: Path) -> Path:
    """The scenes of the training split."""
    path = directory / "scenes" / f"CLEVR_{training_split(directory)}_scenes.json"
    if path.is_file():
        return path
    raise BcnError(f"lessons are made from scenes, and {path} is not there: get it, or train with lessons= and sight=0")


def read(directory: Path, split: str) -> Iterator[Asked]:
    """The questions of a split, or of a lesson, one after the other."""
    return _make(directory, split) if split in LESSONS else read_questions(directory, split)


def _make(directory: Path, lesson: str) -> Iterator[Asked]:
    """The questions of a lesson, with a progress bar."""
    from rich.console import Console
    from rich.progress import track

    path, split, number = source(directory, lesson), str(training_split(directory)), 0
    images = sum(1 for _ in read_scenes(path))
    console = Console(stderr=True, quiet=images < 256)
    for scene in track(read_scenes(path), f"making {lesson} for {images:,} images", images, console=console):
        for made in LESSONS[lesson](scene | {"split": split}):
            image = Path("images") / split / scene["image_filename"]
            yield Asked(image, made["question"], made["answer"], kind_of(made["program"]), number)
            number += 1
