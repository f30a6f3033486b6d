"""Lessons: simple questions about the images of a training split, to be asked before its own.

A relation network that is asked everything at once answers by the kind of a question alone for a long time; one that is
asked few things at first, in few words, begins to look sooner. A lesson is read as a split is, "lesson-1" to
"lesson-3", but no file holds it: its questions are made from the scenes.

1. How many things there are of each size, color, material and shape, always in the same words.
2. Size, material and shape of a thing that is the only one of its color, always in the same words.
3. Everything that names objects by their own attributes, not by other objects: ten questions about each image, made as
   those of clevr-like-v1 are.

The second needs the colors of the first, to find the thing that is meant; from there each attribute helps the others.
"""

from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

from bcn.data.clevr import phrase
from bcn.data.clevr.layout import Asked, question_file, read_questions, stream, training_split
from bcn.data.clevr.program import IllPosed, answer, kind_of
from bcn.data.clevr.question import FAMILIES, Scene, Scope, make_questions
from bcn.data.clevr.scene import ATTRIBUTES
from bcn.errors import BcnError

EDITION = 3
"""counts up when a lesson changes, so that none is read from a cache that holds another"""
_PLAIN = Scope(tuple(index for index, family in enumerate(FAMILIES) if family.forms == ("plain",)), stream=4)


def _of_one(scene: Scene, attributes: Iterable[str], kinds: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Every question of these kinds that names one of these attributes alone, and means one thing where it has to."""
    for named in ((attribute, value) for attribute in attributes for value in ATTRIBUTES[attribute]):
        noun = phrase.Noun((named,))
        for kind in kinds:
            program = phrase.program(kind, noun)
            try:
                found = answer(program, scene)
            except IllPosed:
                continue
            yield {"question": phrase.sentence(kind, noun, choose=itemgetter(0)), "answer": found, "program": program}


LESSONS: dict[str, Callable[[Scene], Iterable[dict[str, Any]]]] = {
    "lesson-1": lambda scene: _of_one(scene, ATTRIBUTES, ["count"]),
    "lesson-2": lambda scene: _of_one(scene, ["color"], ["query_size", "query_material", "query_shape"]),
    "lesson-3": lambda scene: make_questions(scene, scope=_PLAIN),
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
