"""Images, masks, boxes and depth of the scenes of a file: CLEVR's own, ours, or anyone's in the same JSON.

What exists is kept, so that the same command resumes and another adds files. `render.json` says from which scenes and
at which size, and another order for the same directory is refused.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from bcn.data.clevr_like.extras import Annotation, annotations_file, parse_extras, write_annotations, write_extras
from bcn.data.clevr_like.render import render_scene, require_tracer
from bcn.data.clevr_like.scene_files import read_drawable_scenes
from bcn.data.clevr_like.workers import make_workers
from bcn.errors import BcnError
from bcn.io import atomic_write, make_directory, read_json, write_json

Entry = tuple[dict[str, Any], list[Annotation]]
"""what names a scene, and its annotations"""
PART = 20
"""scenes of a task"""


@dataclass(frozen=True)
class RenderOrder:
    directory: Path
    width: int = 480
    height: int = 320
    extras: str = ""
    images: bool = True
    """whether images are rendered, and not extras alone"""

    def __post_init__(self) -> None:
        if not parse_extras(self.extras) and not self.images:
            raise BcnError("neither images nor extras are to be written: give some with --extras masks,boxes,depth")


def render_file(scenes: Path, order: RenderOrder, *, jobs: int = 1, done: Callable[[int], None] = print) -> int:
    """Write what is missing.

    Args:
        scenes: a file of scenes of one split, in CLEVR's JSON.
        jobs: processes.
        done: called with the number of scenes of each part that is finished.

    Returns:
        How many scenes there are.
    """
    require_tracer()
    count, split = _check(scenes)
    _reserve(scenes, order)

    def entries() -> Iterator[Entry]:
        for part in _map(_tasks(scenes, order), jobs):
            yield from part
            done(len(part))

    if "boxes" in parse_extras(order.extras):
        info, path = {"scenes": scenes.name, "images": count}, annotations_file(order.directory, split)
        write_annotations(path, info, entries(), width=order.width, height=order.height)
    else:
        for _ in entries():
            pass
    return count


def _check(scenes: Path) -> tuple[int, str]:
    """How many scenes there are, and of which split; all are read before the first is rendered."""
    count, splits = 0, set[str]()
    for scene in read_drawable_scenes(scenes):
        count += 1
        splits.add(scene["split"])
    if len(splits) != 1:
        raise BcnError(f"{scenes} has scenes of {len(splits)} splits: give a file with those of one")
    return count, splits.pop()


def _reserve(scenes: Path, order: RenderOrder) -> None:
    path = order.directory / "render.json"
    digest = hashlib.sha256(scenes.read_bytes()).hexdigest()
    wanted = {"scenes": scenes.name, "sha256": digest, "width": order.width, "height": order.height}
    if path.exists():
        if (given := read_json(path, f"remove {order.directory}, and render again")) != wanted:
            raise BcnError(f"{path} was made with {given}, not with {wanted}: give these, or another directory")
        return
    if order.directory.exists() and any(order.directory.iterdir()):
        raise BcnError(f"{order.directory} has files, and was not made by this command: give another directory")
    make_directory(order.directory)
    write_json(path, wanted)


Task = tuple[RenderOrder, list[dict[str, Any]]]


def _tasks(scenes: Path, order: RenderOrder) -> Iterator[Task]:
    rest = read_drawable_scenes(scenes)
    while part := list(islice(rest, PART)):
        yield order, part


def _map(tasks: Iterable[Task], jobs: int) -> Iterator[list[Entry]]:
    if jobs == 1:
        yield from map(_render, tasks)
        return
    with make_workers(jobs) as pool:
        yield from pool.map(_render, tasks)


def _render(task: Task) -> list[Entry]:
    """Render some scenes."""
    from PIL import Image

    order, scenes = task
    entries: list[Entry] = []
    extras, size = parse_extras(order.extras), {"width": order.width, "height": order.height}
    for scene in scenes:
        path = order.directory / "images" / scene["split"] / Path(scene["image_filename"]).with_suffix(".png")
        if order.images and not path.exists():
            image = Image.fromarray(render_scene(scene, **size))
            with atomic_write(path) as temporary:
                image.save(temporary, format="PNG")
        annotations = write_extras(order.directory, scene, extras, **size) if extras else []
        entries.append(({name: scene[name] for name in ("image_index", "image_filename", "split")}, annotations))
    return entries
