"""Lessons: simple questions about the images of a training split, to be asked before its own.

A relation network that is asked everything at once answers by the kind of a question alone for a long time; one that is
asked few things at first begins to look sooner. A lesson is read as a split is, "lesson-1" to "lesson-3", but no file
holds it: its ten questions about each image are made from the scenes, as those of clevr-like-v1 are.

1. How many things of a color there are, and whether there are any.
2. The same of things of one size, color, material or shape.
3. Everything that names objects by their own attributes, not by other objects.
"""

from collections.abc import Iterator
from pathlib import Path

from bcn.data.clevr.layout import Asked, question_file, read_questions, stream, training_split
from bcn.data.clevr.program import kind_of
from bcn.data.clevr.question import FAMILIES, Scope, make_questions
from bcn.errors import BcnError

_PLAIN = tuple(index for index, family in enumerate(FAMILIES) if family.forms == ("plain",))
_COUNTED = tuple(index for index in _PLAIN if FAMILIES[index].kind in ("count", "exist"))
LESSONS = {
    "lesson-1": Scope(_COUNTED, attributes=("color",), most=1, stream=2),
    "lesson-2": Scope(_COUNTED, most=1, stream=3),
    "lesson-3": Scope(_PLAIN, stream=4),
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
        for made in make_questions(scene | {"split": split}, scope=LESSONS[lesson]):
            image = Path("images") / split / scene["image_filename"]
            yield Asked(image, made["question"], made["answer"], kind_of(made["program"]), number)
            number += 1
