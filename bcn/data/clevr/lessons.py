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

from bcn.data.clevr.layout import Asked, stream
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


def scene_file(directory: Path, split: str) -> Path:
    """The file that holds the scenes of a split."""
    path = directory / "scenes" / f"CLEVR_{split}_scenes.json"
    if not path.is_file():
        raise BcnError(f"lessons are made from scenes, and {path} is not there: get it, or train with lessons=")
    return path


def read_lesson(directory: Path, split: str, lesson: str) -> Iterator[Asked]:
    """The questions of a lesson about the images of a split, with a progress bar."""
    from rich.console import Console
    from rich.progress import track

    path, number = scene_file(directory, split), 0
    images = sum(1 for _ in stream(path, "scenes"))
    console = Console(stderr=True, quiet=images < 256)
    for scene in track(stream(path, "scenes"), f"making {lesson} for {images:,} images", images, console=console):
        for made in make_questions(scene | {"split": split}, scope=LESSONS[lesson]):
            image = Path("images") / split / scene["image_filename"]
            yield Asked(image, made["question"], made["answer"], kind_of(made["program"]), number)
            number += 1
