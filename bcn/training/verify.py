"""Whether what is on disk is whole: every file of a run, of a cache, and of data sets."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from bcn.data.cache import verify_cache
from bcn.data.check import Finding, check
from bcn.data.registry import DATASETS
from bcn.errors import BcnError
from bcn.training.checkpoint import list_checkpoints, read_checkpoint
from bcn.training.run import Run, find_run
from bcn.training.state import read_position
from bcn.training.weights import load_model

RUN_FILES = ("metrics.jsonl", "checkpoint", "record.json", "last.safetensors")


def verify(path: Path) -> Iterator[Finding]:
    """Verify a run, a cache or a data set, or all of these that are in a directory, and two levels below it."""
    if not path.is_dir():
        raise BcnError(f"{path} is not a directory: give that of a run, of a cache or of data")
    found = False
    for finding in _verify_all(path):
        found = True
        yield finding
    if not found:
        raise BcnError(f"{path} holds neither a run nor a cache nor data: give a directory that does")


def verify_run(path: Path) -> Iterator[Finding]:
    """Verify every file of a run, and that they agree."""
    try:
        run = find_run(path)
        about = f"{run.recipe.name}, seed {run.manifest['seed']}"
    except (BcnError, KeyError, TypeError, ValueError) as error:
        yield Finding(str(path), str(error), "bad")
        return
    yield Finding(str(path), f"manifest.json: {about}", "good")
    lines = None
    for checkpoint in list_checkpoints(run.checkpoints):
        try:
            position, lines = read_position(read_checkpoint(checkpoint)[1])
            yield Finding(str(checkpoint), f"whole, at step {position.step}", "good")
        except BcnError as error:
            yield Finding(str(checkpoint), f"{error}: the run goes on from another, or remove it", "bad")
        except (KeyError, TypeError, ValueError):
            yield Finding(str(checkpoint), "does not say where in the run it was saved: remove it", "bad")
    yield from _verify_events(run, lines or [])
    record = None
    try:
        record = run.record()
    except BcnError as error:
        yield Finding(str(path / "record.json"), str(error), "bad")
    for name in ("best", "last"):
        if (file := path / f"{name}.safetensors").exists():
            yield from _verify_weights(file)
        elif record is not None and (name == "last" or record["best_epoch"] is not None):
            yield Finding(str(file), "is missing: remove record.json, and the same command writes both", "bad")
    if not (path / "record.json").exists():
        yield Finding(str(path), "is not finished: the same command goes on with it", "good")
    elif record is not None and record.get("curve") != run.curve():
        yield Finding(str(path / "record.json"), "has another curve than metrics.jsonl", "bad")
    elif record is not None:
        yield Finding(str(path / "record.json"), "whole, and its counts and curve hold", "good")


def _verify_all(path: Path) -> Iterator[Finding]:
    for directory in (path, *_below(path), *(inner for outer in _below(path) for inner in _below(outer))):
        if any((directory / name).exists() for name in RUN_FILES):
            yield from verify_run(directory)
        elif (directory / "manifest.json").exists() or _is_cache(directory):
            yield from _verify_cache(directory)
    if (path / "questions").is_dir() or (path / "questions.jsonl").exists():
        yield from check(str(path))
        return
    for name, entry in DATASETS.items():
        files = entry.find(path) if entry.find and entry.origin != "generated" else []
        if any(file.is_relative_to(path) and not (file / "manifest.json").exists() for file in files):
            yield from check(name, path)


def _below(path: Path) -> list[Path]:
    return sorted(child for child in path.glob("[!.]*") if child.is_dir())


def _is_cache(directory: Path) -> bool:
    """One that has lost its manifest."""
    return directory.with_name(f"{directory.name}.lock").exists() and any(directory.glob("*.npy"))


def _verify_cache(directory: Path) -> Iterator[Finding]:
    try:
        verify_cache(directory)
        yield Finding(str(directory), "every file has the checksum it was made with", "good")
    except BcnError as error:
        yield Finding(str(directory), str(error), "bad")


def _verify_weights(file: Path) -> Iterator[Finding]:
    try:
        _, description = load_model(file)
        yield Finding(str(file), f"whole, {description['model']} of epoch {description['epoch']}", "good")
    except BcnError as error:
        yield Finding(str(file), str(error), "bad")


def _verify_events(run: Run, lines: list[str]) -> Iterator[Finding]:
    """The lines of metrics.jsonl against their own checksums, and against the copy in the newest checkpoint."""
    subject = str(run.log.path)
    damaged = set(run.log.find_damaged()) | set(run.log.find_changed(lines))
    if damaged:
        yield Finding(subject, f"damaged in line {_join(damaged)}: the run restores it when it goes on", "bad")
    elif run.log.path.exists():
        yield Finding(subject, "every line is whole", "good")


def _join(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))
