"""Whether data sets hold what they should: known checksums, cached files, and directories of images and questions."""

import tomllib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Literal, NamedTuple

from bcn.data.cache import cached_parts, check_cache, drop_cache
from bcn.data.clevr_like.make import join_parts
from bcn.data.registry import DATASETS, find_entry, missing_files, open_dataset
from bcn.data.vqa.check import check_questions, describe_questions
from bcn.errors import BcnError, did_you_mean

CHECKSUMS: dict[str, dict[str, str]] = tomllib.loads((files("bcn.data") / "checksums.toml").read_text(encoding="utf-8"))
"""of every split with a known one, by data set; an empty text where nobody has published one"""


class Finding(NamedTuple):
    subject: str
    """a data set, or one of its splits, or a directory"""
    text: str
    status: Literal["good", "bad", "missing"]
    examples: tuple[str, ...] = ()
    """all that `text` shows some of"""


def check(name: str, data: str | Path | None = None) -> Iterator[Finding]:
    """Check a data set by its name, image by image, or a directory of images and questions for what spoils training."""
    if name not in DATASETS:
        yield from _check_directory(name, Path(name))
    elif missing := missing_files(name, data):
        yield Finding(name, missing, "missing")
    elif name in CHECKSUMS:
        yield from _check_splits(name, data)
    else:
        find = find_entry(name).find
        assert find is not None
        yield from _check_directory(name, find(data)[0])


def check_name(name: str) -> None:
    """Refuse what is neither a data set nor a directory."""
    if name not in DATASETS and not Path(name).is_dir():
        raise did_you_mean("data set (and there is no such directory)", name, DATASETS)


def check_split(name: str, split: str, data: str | Path | None = None) -> str:
    """Open a split, which checks the files it comes from, and compare what it gives with the known checksum."""
    dataset = open_dataset(name, split, data=data)
    actual, known = dataset.checksum(), CHECKSUMS[name][split]
    if not known:
        return f"{len(dataset):,} images can be read; no checksum is published"
    if actual != known:
        raise BcnError(
            f"{name} {split} gives images with sha256 {actual} where {known} is known: "
            "this is another version of the data than the results were made with"
        )
    return f"{len(dataset):,} images, sha256 {actual}"


def check_directory(directory: str | Path) -> list[str]:
    """What would spoil training on a directory of images and questions, in sentences.

    Parts of clevr-like that were made apart are joined first.
    """
    root = Path(directory).expanduser()
    problems = join_parts(root)
    if problems and not (root / "questions").is_dir():
        return problems
    return problems + check_questions(root)


def drop_damaged(name: str) -> Iterator[str]:
    """Remove what is cached of a data set and has changed since; what was wrong with it."""
    for part in cached_parts(name):
        try:
            check_cache(name, part.name)
        except BcnError as error:
            yield str(error)
            drop_cache(name, part.name)


def _check_directory(name: str, directory: Path) -> Iterator[Finding]:
    problems = check_directory(directory)
    yield from (Finding(name, line, "good") for line in describe_questions(Path(directory).expanduser()))
    yield from (Finding(name, problem, "bad", getattr(problem, "examples", ())) for problem in problems)
    if not problems:
        yield Finding(name, "no problems found", "good")


def _check_splits(name: str, data: str | Path | None) -> Iterator[Finding]:
    try:
        for part in cached_parts(name):
            check_cache(name, part.name)
        for split in _splits_to_check(name):
            yield Finding(f"{name} {split}", check_split(name, split, data), "good")
    except BcnError as error:
        yield Finding(name, str(error), "bad")


def _splits_to_check(name: str) -> list[str]:
    """The splits with a known checksum; of a set that is generated once, those that were, with seed 0."""
    if find_entry(name).origin != "generated once":
        return list(CHECKSUMS[name])
    generated = {part.name for part in cached_parts(name)}
    return [split for split in CHECKSUMS[name] if f"{split.removesuffix('+val')}-seed0" in generated]
