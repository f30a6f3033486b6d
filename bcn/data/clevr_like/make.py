"""Make clevr-like-v1 in CLEVR's layout, in parts of 100 images, the unit of processes, shards and resuming.

The specification of a split is written to `parts/<split>.json` before its first image. A part is its images, and then a
file in `parts/`: a line with the specification, and one for each image, {"scene", "questions"}. When all parts of a
split exist, they are joined to `scenes/CLEVR_<split>_scenes.json` and `questions/CLEVR_<split>_questions.json`, by the
process that makes the last of them, or by `bcn data check` where shards were made on several machines and copied
together. A split can grow later: existing parts are reused.
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
MAX_IMAGES = 10_000_000
"""of a split"""


@dataclass(frozen=True)
class SplitSpec:
    """What a split is made with. Its files say so, and another specification for the same directory is refused."""

    split: str = "train"
    seed: int = 0
    size: int = 128
    version: str = CLEVR_LIKE

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\w{1,64}", self.split):
            raise BcnError(
                f"the split {self.split!r} cannot be made: its name may have up to 64 letters, digits and underscores"
            )
        if not 0 <= self.seed < 1 << 64:
            raise BcnError(f"the seed {self.seed} was given: accepted are 0 to {(1 << 64) - 1}")


def make_clevr_like(
    directory: Path,
    spec: SplitSpec,
    images: int,
    *,
    shard: tuple[int, int] = (1, 1),
    jobs: int = 1,
    done: Callable[[int], None] = print,
) -> bool:
    """Make what is missing of a shard, and join the split if no part of it is missing then.

    A split can grow, and never shrinks.

    Args:
        images: in the whole split.
        shard: number of the shard, from 1 on, and how many there are.
        jobs: processes.
        done: called with the number of images of each part that is finished.

    Returns:
        Whether the split is whole.
    """
    number, shards = shard
    if not 1 <= number <= shards:
        raise BcnError(f"shard {number}/{shards} was given: accepted are 1/{shards} to {shards}/{shards}")
    require_tracer()
    _reserve(directory, spec, images)
    tasks = [(directory, spec, images, indices) for indices in shard_parts(images, shard)]
    if jobs == 1:
        for count in map(_make_part, tasks):
            done(count)
    else:
        # Spawned, because a forked child shares locks of the libraries' threads.
        with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
            for count in pool.map(_make_part, tasks):
                done(count)
    return join(directory, spec, images)


def shard_parts(images: int, shard: tuple[int, int]) -> list[range]:
    """The indices of the images of each part of a shard."""
    return _parts(images)[shard[0] - 1 :: shard[1]]


def _reserve(directory: Path, spec: SplitSpec, images: int) -> None:
    """Write down the specification; refuse a directory that has another, more images, or files of somebody else."""
    reserved = directory / "parts" / f"{spec.split}.json"
    existing = {path: _read_header(path) for path in _part_files(directory, spec.split)}
    if reserved.exists():
        existing[reserved] = {"info": read_json(reserved, f"remove {directory}, and make it again"), "images": 0}
    for path, header in existing.items():
        if header["info"] != asdict(spec):
            raise BcnError(
                f"{path} was made with {header['info']}, not with {asdict(spec)}: give these, or another directory"
            )
        if header["images"] > images:
            raise BcnError(
                f"{images} images of {spec.split} were asked for, and {header['images']} before: "
                f"give {header['images']} or more, or another directory"
            )
    foreign = [path for path in _joined_files(directory, spec).values() if path.exists() and not is_clevr_like(path)]
    if not existing:
        foreign += sorted(_image_file(directory, spec, 0).parent.glob("*"))
    if foreign:
        raise BcnError(f"{foreign[0]} exists, and was not made by this command: give another directory")
    if not reserved.exists():
        write_json(reserved, asdict(spec))


def join(directory: Path, spec: SplitSpec, images: int) -> bool:
    """Write the files of scenes and questions if all parts exist; whether they do."""
    parts = _parts(images)
    if not all(_is_whole(directory, spec, indices) for indices in parts):
        return False
    info = json.dumps(asdict(spec) | {"images": images})
    first_lines = {key: f'{{"info": {info}, "{key}": [\n' for key in ("scenes", "questions")}

    def outdated() -> list[str]:  # a file that is written again has its images decoded again
        paths = _joined_files(directory, spec)
        return [key for key, line in first_lines.items() if not paths[key].exists() or _first_line(paths[key]) != line]

    if not outdated():
        return True
    with locked(directory / "parts" / f"{spec.split}.lock"):
        for key in outdated():
            with (
                atomic_write(_joined_files(directory, spec)[key]) as temporary,
                open(temporary, "w", encoding="utf-8") as file,
            ):
                file.write(first_lines[key])
                for position, text in enumerate(_entries(directory, spec, parts, key)):
                    file.write(",\n" * (position > 0) + text)
                file.write("\n]}\n")
    return True


def join_parts(directory: Path) -> list[str]:
    """Join the parts of every split that is complete; what the others lack, in sentences."""
    problems = []
    for split in sorted({path.name.rpartition("-")[0] for path in (directory / "parts").glob("*-*.jsonl")}):
        headers = [_read_header(path) for path in _part_files(directory, split)]
        if any(header["info"] != headers[0]["info"] for header in headers):
            problems.append(f"the parts of {split} were made with different specifications: make them again with one")
            continue
        spec, images = SplitSpec(**headers[0]["info"]), max(header["images"] for header in headers)
        if not join(directory, spec, images):
            missing = [part for part in _parts(images) if not _is_whole(directory, spec, part)]
            ranges = [f"{part.start} to {part.stop - 1}" for part in missing]
            examples = ", ".join(ranges[:5] + ["..."] * (len(ranges) > 5))
            problems.append(
                f"{split} lacks {sum(map(len, missing)):,} of {images:,} images ({examples}): make the other shards, "
                f"or all that is missing with bcn clevr make {directory} --split {split} --images {images} "
                f"--seed {spec.seed} --size {spec.size}"
            )
    return problems


def _parts(images: int) -> list[range]:
    return [range(start, min(start + PART, images)) for start in range(0, images, PART)]


def _part_files(directory: Path, split: str) -> list[Path]:
    """The parts of a split that exist."""
    paths = sorted((directory / "parts").glob("*-*.jsonl"))
    return [path for path in paths if path.name.rpartition("-")[0] == split]


def _part_file(directory: Path, spec: SplitSpec, indices: range) -> Path:
    return directory / "parts" / f"{spec.split}-{indices.start:06d}.jsonl"


def _joined_files(directory: Path, spec: SplitSpec) -> dict[str, Path]:
    return {key: directory / key / f"CLEVR_{spec.split}_{key}.json" for key in ("scenes", "questions")}


def _image_file(directory: Path, spec: SplitSpec, index: int) -> Path:
    return directory / "images" / spec.split / f"CLEVR_{spec.split}_{index:06d}.png"


def _read_part(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BcnError(f"{path} is damaged: remove it, and make its part again") from error


def _first_line(path: Path) -> str:
    with open(path, encoding="utf-8") as file:
        return file.readline()


def _read_header(path: Path) -> Any:
    """The first line of a part: {"info", "images"}."""
    try:
        header = json.loads(_first_line(path))
        SplitSpec(**header["info"])
        if type(header["images"]) is not int or not 0 < header["images"] <= MAX_IMAGES:
            raise ValueError(f"{header['images']} images")
        return {"info": header["info"], "images": header["images"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BcnError(f"{path} is damaged: remove it, and make its part again") from error


def _is_written(directory: Path, spec: SplitSpec, indices: range) -> bool:
    path = _part_file(directory, spec, indices)
    return path.exists() and _read_part(path).count("\n") > len(indices)  # the first line is the header


def _is_whole(directory: Path, spec: SplitSpec, indices: range) -> bool:
    rendered = all(_image_file(directory, spec, index).exists() for index in indices)
    return rendered and _is_written(directory, spec, indices)


def _entries(directory: Path, spec: SplitSpec, parts: list[range], key: str) -> Iterator[str]:
    """The scenes or the questions of all parts, as JSON; never more than a part in memory."""
    for indices in parts:
        path = _part_file(directory, spec, indices)
        for line in _read_part(path).splitlines()[1 : len(indices) + 1]:
            try:
                entry = json.loads(line)
                questions, scene = list(entry["questions"]), entry["scene"]
                entries = questions if key == "questions" else [scene]
                if not all(isinstance(each, dict) for each in entries):
                    raise TypeError(f"an entry of {key} is not an object in braces")
            except (ValueError, KeyError, TypeError) as error:
                raise BcnError(f"{path} is damaged: remove it, and make its part again") from error
            yield from map(json.dumps, entries)


def _make_part(task: tuple[Path, SplitSpec, int, range]) -> int:
    """Make what is missing of a part; how many images it has."""
    from PIL import Image

    directory, spec, images, indices = task
    if _is_whole(directory, spec, indices):
        return len(indices)
    lines = [json.dumps({"info": asdict(spec), "images": images})]
    for index in indices:
        scene = make_scene(index, split=spec.split, seed=spec.seed)
        path = _image_file(directory, spec, index)
        if not path.exists():
            image = Image.fromarray(render_scene(scene, width=spec.size, height=spec.size))
            with atomic_write(path) as temporary:
                image.save(temporary, format="PNG")
        lines.append(json.dumps({"scene": scene, "questions": make_questions(scene, seed=spec.seed)}))
    with atomic_write(_part_file(directory, spec, indices)) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(indices)
