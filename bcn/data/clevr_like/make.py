"""Make a version of clevr-like in CLEVR's layout, in parts of 100 images, the unit of processes, shards and resuming.

The specification of a split is written to `parts/<split>.json` before its first image. A part is its images, and then a
file in `parts/`: a line with the specification, and one for each image, {"scene", "questions"}, with "annotations"
where boxes are among the extras. When all parts of a
split exist, they are joined to `scenes/CLEVR_<split>_scenes.json` and `questions/CLEVR_<split>_questions.json`, by the
process that makes the last of them, or by `bcn data check` where shards were made on several machines and copied
together. A split can grow later: existing parts are reused.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bcn.data.clevr_like.extras import annotations_file, extra_files, write_annotations, write_extras
from bcn.data.clevr_like.grammars import find_grammar
from bcn.data.clevr_like.render import render_scene, require_tracer
from bcn.data.clevr_like.scene import make_scene
from bcn.data.clevr_like.spec import SplitSpec
from bcn.data.clevr_like.workers import make_workers
from bcn.data.vqa.clevr import find_clevr_like
from bcn.errors import BcnError
from bcn.io import atomic_write, locked, read_json, write_json

PART = 100
MAX_IMAGES = 10_000_000
"""of a split"""


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
        with make_workers(jobs) as pool:
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
        if header["info"] != spec.info:
            raise BcnError(
                f"{path} was made with {header['info']}, not with {spec.info}: give these, or another directory"
            )
        if header["images"] > images:
            raise BcnError(
                f"{images} images of {spec.split} were asked for, and {header['images']} before: "
                f"give {header['images']} or more, or another directory"
            )
    foreign = [path for path in _joined_files(directory, spec).values() if path.exists() and not find_clevr_like(path)]
    if not existing:
        foreign += sorted(_image_file(directory, spec, 0).parent.glob("*"))
    if foreign:
        raise BcnError(f"{foreign[0]} exists, and was not made by this command: give another directory")
    if not reserved.exists():
        write_json(reserved, spec.info)


def join(directory: Path, spec: SplitSpec, images: int) -> bool:
    """Write the files of scenes and questions if all parts exist; whether they do."""
    parts = _parts(images)
    if not all(_is_whole(directory, spec, indices) for indices in parts):
        return False
    made_with = spec.info | {"images": images}
    info = json.dumps(made_with)
    first_lines = {key: f'{{"info": {info}, "{key}": [\n' for key in ("scenes", "questions")}

    if "boxes" in spec.extras:
        first_lines["annotations"] = f'{{"info": {info}, '

    def outdated() -> list[str]:  # a file that is written again has its images decoded again
        paths = _joined_files(directory, spec)
        return [
            key
            for key, line in first_lines.items()
            if not paths[key].exists() or not _first_line(paths[key]).startswith(line)
        ]

    if not outdated():
        return True
    with locked(directory / "parts" / f"{spec.split}.lock"):
        for key in outdated():
            if key == "annotations":
                write_annotations(
                    _joined_files(directory, spec)[key],
                    made_with,
                    ((entry["scene"], entry["annotations"]) for entry in _read_entries(directory, spec, parts)),
                    width=spec.size,
                    height=spec.size,
                )
                continue
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
        spec, images = SplitSpec.from_info(headers[0]["info"]), max(header["images"] for header in headers)
        if not join(directory, spec, images):
            missing = [part for part in _parts(images) if not _is_whole(directory, spec, part)]
            ranges = [f"{part.start} to {part.stop - 1}" for part in missing]
            examples = ", ".join(ranges[:5] + ["..."] * (len(ranges) > 5))
            problems.append(
                f"{split} lacks {sum(map(len, missing)):,} of {images:,} images ({examples}): make the other shards, "
                f"or all that is missing with bcn clevr make {directory} --images {images} {spec.options}"
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
    files = {key: directory / key / f"CLEVR_{spec.split}_{key}.json" for key in ("scenes", "questions")}
    return files | ({"annotations": annotations_file(directory, spec.split)} if "boxes" in spec.extras else {})


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
        SplitSpec.from_info(header["info"])
        if type(header["images"]) is not int or not 0 < header["images"] <= MAX_IMAGES:
            raise ValueError(f"{header['images']} images")
        return {"info": header["info"], "images": header["images"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BcnError(f"{path} is damaged: remove it, and make its part again") from error


def _is_written(directory: Path, spec: SplitSpec, indices: range) -> bool:
    path = _part_file(directory, spec, indices)
    return path.exists() and _read_part(path).count("\n") > len(indices)  # the first line is the header


def _is_whole(directory: Path, spec: SplitSpec, indices: range) -> bool:
    rendered = all(path.exists() for index in indices for path in _pictures(directory, spec, index))
    return rendered and _is_written(directory, spec, indices)


def _pictures(directory: Path, spec: SplitSpec, index: int) -> list[Path]:
    """The image of a scene, and the images among its extras."""
    image = _image_file(directory, spec, index)
    scene = {"split": spec.split, "image_filename": image.name}
    return [image, *extra_files(directory, scene, spec.extras.split(",") if spec.extras else ()).values()]


def _entries(directory: Path, spec: SplitSpec, parts: list[range], key: str) -> Iterator[str]:
    """The scenes or the questions of all parts, as JSON."""
    for entry in _read_entries(directory, spec, parts):
        yield from map(json.dumps, entry["questions"] if key == "questions" else [entry["scene"]])


def _read_entries(directory: Path, spec: SplitSpec, parts: list[range]) -> Iterator[dict[str, Any]]:
    """{"scene", "questions"} of all images, and "annotations" where boxes are extras; at most a part in memory."""
    for indices in parts:
        path = _part_file(directory, spec, indices)
        for line in _read_part(path).splitlines()[1 : len(indices) + 1]:
            try:
                entry = json.loads(line)
                annotations = list(entry["annotations"]) if "boxes" in spec.extras else []
                for each in (entry["scene"], *entry["questions"], *annotations):
                    if not isinstance(each, dict):
                        raise TypeError("an entry is not an object in braces")
                scene = entry["scene"]
                if not (isinstance(scene["image_index"], int) and isinstance(scene["image_filename"], str)):
                    raise TypeError("a scene does not name its image")
            except (ValueError, KeyError, TypeError) as error:
                raise BcnError(f"{path} is damaged: remove it, and make its part again") from error
            yield entry


def _make_part(task: tuple[Path, SplitSpec, int, range]) -> int:
    """Make what is missing of a part; how many images it has."""
    from PIL import Image

    directory, spec, images, indices = task
    if _is_whole(directory, spec, indices):
        return len(indices)
    make_questions = find_grammar(spec.version)
    rules, extras = spec.rules, spec.extras.split(",") if spec.extras else []
    lines = [json.dumps({"info": spec.info, "images": images})]
    for index in indices:
        scene = make_scene(index, split=spec.split, seed=spec.seed, rules=rules)
        path = _image_file(directory, spec, index)
        if not path.exists():
            image = Image.fromarray(render_scene(scene, width=spec.size, height=spec.size))
            with atomic_write(path) as temporary:
                image.save(temporary, format="PNG")
        entry = {"scene": scene, "questions": make_questions(scene, seed=spec.seed)}
        if extras:
            annotations = write_extras(directory, scene, extras, width=spec.size, height=spec.size)
            entry |= {"annotations": annotations} if "boxes" in extras else {}
        lines.append(json.dumps(entry))
    with atomic_write(_part_file(directory, spec, indices)) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(indices)
