"""Make clevr-like-v1 in CLEVR's layout, in parts of 100 images: the unit of processes, of shards and of going on later.

What is ordered stands in `parts/<split>.json` before the first picture is there. A part is pictures, and when they are
there a file in `parts/`: a line with what was ordered, and one for each image, {"scene", "questions"}. When all parts
of a split are there, they are joined to `scenes/CLEVR_<split>_scenes.json` and
`questions/CLEVR_<split>_questions.json`, by whoever makes the last of them, or by `bcn data check` where they were made
apart and copied together. More images can be ordered later: the parts serve again.
"""

import json
import multiprocessing
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bcn.data.clevr_like.questions import make_questions
from bcn.data.clevr_like.render import render_scene, require_tracer
from bcn.data.clevr_like.scene import make_scene
from bcn.data.vqa.clevr import CLEVR_LIKE, is_clevr_like
from bcn.errors import BcnError
from bcn.io import atomic_write, locked, read_json, write_json

PART = 100


@dataclass(frozen=True)
class Order:
    """What is made. It stands in the files, and another order for the same place is refused."""

    split: str = "train"
    seed: int = 0
    size: int = 128
    version: str = CLEVR_LIKE

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\w+", self.split):
            raise BcnError(
                f"the split {self.split!r} cannot be made: its name may have letters, digits and underscores"
            )
        if not 0 <= self.seed < 1 << 64:
            raise BcnError(f"the seed {self.seed} was given: accepted are 0 to {(1 << 64) - 1}")


def make_clevr_like(
    directory: Path,
    order: Order,
    images: int,
    *,
    shard: tuple[int, int] = (1, 1),
    jobs: int = 1,
    done: Callable[[int], None] = print,
) -> bool:
    """Make what is missing of shard 1, 2, ... of so many, and join if that was all; whether the split is whole.

    `done` hears the number of images as parts are finished. A split grows, and never shrinks.
    """
    number, shards = shard
    if not 1 <= number <= shards:
        raise BcnError(f"shard {number}/{shards} was given: accepted are 1/{shards} to {shards}/{shards}")
    require_tracer()
    _claim(directory, order, images)
    tasks = [(directory, order, images, indices) for indices in share(images, shard)]
    if jobs == 1:
        for count in map(_make_part, tasks):
            done(count)
    else:
        # Spawned, because a forked child shares locks of the libraries' threads.
        with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
            for count in pool.map(_make_part, tasks):
                done(count)
    return join(directory, order, images)


def share(images: int, shard: tuple[int, int]) -> list[range]:
    """The images of each part that a shard makes."""
    return _parts(images)[shard[0] - 1 :: shard[1]]


def _claim(directory: Path, order: Order, images: int) -> None:
    """Refuse a place where something else is, or was ordered; else note what is ordered."""
    claim = directory / "parts" / f"{order.split}.json"
    parts = _files(directory, order.split)
    ordered = {path: _head(path) for path in parts}
    if claim.exists():
        ordered[claim] = {"info": read_json(claim, f"remove {directory}, and make it again"), "images": 0}
    for path, there in ordered.items():
        if there["info"] != asdict(order):
            raise BcnError(
                f"{path} was made with {there['info']}, not with {asdict(order)}: give these, or another directory"
            )
        if there["images"] > images:
            raise BcnError(
                f"{images} images of {order.split} were ordered, and {there['images']} before: "
                f"order {there['images']} or more, or give another directory"
            )
    foreign = [path for path in _joined(directory, order).values() if path.exists() and not is_clevr_like(path)]
    if not ordered:
        foreign += sorted(_picture(directory, order, 0).parent.glob("*"))
    if foreign:
        raise BcnError(f"{foreign[0]} is there, and was not made by this command: give another directory")
    if not claim.exists():
        write_json(claim, asdict(order))


def join(directory: Path, order: Order, images: int) -> bool:
    """Write the files of scenes and questions if all parts are there; whether they are."""
    parts = _parts(images)
    if not all(_is_whole(directory, order, indices) for indices in parts):
        return False
    info = json.dumps(asdict(order) | {"images": images})
    heads = {key: f'{{"info": {info}, "{key}": [\n' for key in ("scenes", "questions")}

    def old() -> list[str]:  # a file that was written again would be decoded again
        paths = _joined(directory, order)
        return [key for key, head in heads.items() if not paths[key].exists() or _first_line(paths[key]) != head]

    if not old():
        return True
    with locked(directory / "parts" / f"{order.split}.lock"):
        for key in old():
            with atomic_write(_joined(directory, order)[key]) as temporary, open(temporary, "w") as file:
                file.write(heads[key])
                for position, text in enumerate(_entries(directory, order, parts, key)):
                    file.write(",\n" * (position > 0) + text)
                file.write("\n]}\n")
    return True


def join_parts(directory: Path) -> list[str]:
    """Join the parts of every split as far as they were copied together; what is missing, in sentences."""
    problems = []
    for split in sorted({path.name.rpartition("-")[0] for path in (directory / "parts").glob("*-*.jsonl")}):
        heads = [_head(path) for path in _files(directory, split)]
        if any(head["info"] != heads[0]["info"] for head in heads):
            problems.append(f"the parts of {split} were made with different orders: make them again with one")
            continue
        order, images = Order(**heads[0]["info"]), max(head["images"] for head in heads)
        if not join(directory, order, images):
            missing = [part for part in _parts(images) if not _is_whole(directory, order, part)]
            some = ", ".join(f"{part.start} to {part.stop - 1}" for part in missing[:5]) + ", ..." * (len(missing) > 5)
            problems.append(
                f"{split} lacks {sum(map(len, missing)):,} of {images:,} images ({some}): make the other shards, "
                f"or all that is missing with bcn clevr make {directory} --split {split} --images {images} "
                f"--seed {order.seed} --size {order.size}"
            )
    return problems


def _parts(images: int) -> list[range]:
    return [range(start, min(start + PART, images)) for start in range(0, images, PART)]


def _files(directory: Path, split: str) -> list[Path]:
    """The parts of a split that are there."""
    every = sorted((directory / "parts").glob("*-*.jsonl"))
    return [path for path in every if path.name.rpartition("-")[0] == split]


def _file(directory: Path, order: Order, indices: range) -> Path:
    return directory / "parts" / f"{order.split}-{indices.start:06d}.jsonl"


def _joined(directory: Path, order: Order) -> dict[str, Path]:
    return {key: directory / key / f"CLEVR_{order.split}_{key}.json" for key in ("scenes", "questions")}


def _picture(directory: Path, order: Order, index: int) -> Path:
    return directory / "images" / order.split / f"CLEVR_{order.split}_{index:06d}.png"


def _first_line(path: Path) -> str:
    with open(path) as file:
        return file.readline()


def _head(path: Path) -> Any:
    """What was ordered: {"info", "images"}."""
    try:
        head = json.loads(_first_line(path))
        Order(**head["info"])
        return {"info": head["info"], "images": int(head["images"])}
    except (ValueError, KeyError, TypeError) as error:
        raise BcnError(f"{path} is damaged: remove it, and make its part again") from error


def _is_written(directory: Path, order: Order, indices: range) -> bool:
    path = _file(directory, order, indices)
    return path.exists() and path.read_text().count("\n") > len(indices)  # the first line is the order


def _is_whole(directory: Path, order: Order, indices: range) -> bool:
    pictures = all(_picture(directory, order, index).exists() for index in indices)
    return pictures and _is_written(directory, order, indices)


def _entries(directory: Path, order: Order, parts: list[range], key: str) -> Iterator[str]:
    """The scenes or the questions of all parts, as JSON; never more than a part in memory."""
    for indices in parts:
        path = _file(directory, order, indices)
        for line in path.read_text().splitlines()[1 : len(indices) + 1]:
            try:
                entry = json.loads(line)
                asked, scene = entry["questions"], entry["scene"]
            except (ValueError, KeyError, TypeError) as error:
                raise BcnError(f"{path} is damaged: remove it, and make its part again") from error
            yield from map(json.dumps, asked if key == "questions" else [scene])


def _make_part(task: tuple[Path, Order, int, range]) -> int:
    """Make a part, leaving what is there already; how many images it has."""
    from PIL import Image

    directory, order, images, indices = task
    if _is_whole(directory, order, indices):
        return len(indices)
    lines = [json.dumps({"info": asdict(order), "images": images})]
    for index in indices:
        scene = make_scene(index, split=order.split, seed=order.seed)
        path = _picture(directory, order, index)
        if not path.exists():
            picture = Image.fromarray(render_scene(scene, width=order.size, height=order.size))
            with atomic_write(path) as temporary:
                picture.save(temporary, format="PNG")
        lines.append(json.dumps({"scene": scene, "questions": make_questions(scene, seed=order.seed)}))
    with atomic_write(_file(directory, order, indices)) as temporary:
        temporary.write_text("\n".join(lines) + "\n")
    return len(indices)
