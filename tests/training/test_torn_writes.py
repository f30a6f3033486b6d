"""Power failures: from everything that they may leave, a run goes on from its last checkpoint and ends the same."""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.blobs import install, plain
from helpers.runs import assert_same
from helpers.torn_writes import Disk, Tree, read_tree, write_tree

from bcn.data.cache import open_cache, write_array
from bcn.errors import BcnError
from bcn.training.checkpoint import load_checkpoint, save_checkpoint
from bcn.training.interrupts import Interrupted
from bcn.training.loop import Trainer, train
from bcn.training.recipe import Recipe
from bcn.training.run import run_id

SAMPLE = 12
"""of the crashes after which `make test` trains to the end"""


def recipe() -> Recipe:
    return replace(plain("smoke"), epochs=2)


RUN = run_id(recipe(), 0)


@pytest.fixture(autouse=True)
def blobs(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch.setitem)


def record_run(runs: Path) -> Disk:
    """A run with a checkpoint after every step, stopped once and gone on with; each is marked when it is written."""
    runs.mkdir()
    disk = Disk(runs)

    def marked(folder: Path, step: int, *arguments: Any) -> None:
        save_checkpoint(folder, step, *arguments)
        disk.mark(str(step))

    def stop(self: Trainer, *arguments: Any, **options: Any) -> Any:
        if self.state.position.step == 7:
            raise Interrupted(15)
        return step(self, *arguments, **options)

    step = Trainer.step
    with pytest.MonkeyPatch.context() as patch, disk.recording():
        install(patch.setitem)
        patch.setattr("bcn.training.loop.save_checkpoint", marked)
        with patch.context() as inner:
            inner.setattr(Trainer, "step", stop)
            with pytest.raises(Interrupted):
                train(recipe(), seed=0, runs=runs, threads=1, save_minutes=0)
        train(recipe(), seed=0, runs=runs, threads=1, save_minutes=0)
    return disk


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Disk:
    return record_run(tmp_path_factory.mktemp("recorded") / "runs")


@pytest.fixture(scope="module")
def crashes(disk: Disk) -> list[tuple[int, Tree]]:
    return list(find_crashes(disk))


def find_crashes(disk: Disk) -> Iterator[tuple[int, Tree]]:
    """The step of the last checkpoint that was written before a power failure, and what is left after it."""
    marks = [int(each.name) if each.kind == "mark" else 0 for each in disk.operations]
    for count, tree in disk.crashes():
        yield max(marks[:count], default=0), tree


def test_everything_was_recorded(disk: Disk) -> None:
    """What is replayed as a whole is what is there."""
    assert disk.final() == read_tree(disk.root)
    assert {operation.kind for operation in disk.operations} >= {"name", "rename", "unlink", "write", "sync", "mark"}


def find_lost(crashes: Iterable[tuple[int, Tree]], directory: Path) -> Iterator[int]:
    """The steps of checkpoints that were written before a power failure, and are not there after it."""
    for saved, tree in crashes:
        step = 0
        with suppress(BcnError):  # every checkpoint is damaged
            checkpoint = load_checkpoint(write_tree(tree, directory) / RUN / "checkpoint")
            step = checkpoint[1]["position"]["step"] if checkpoint is not None else 0
        shutil.rmtree(directory)
        if step < saved:
            yield saved


def test_no_checkpoint_is_lost_that_was_written(crashes: list[tuple[int, Tree]], tmp_path: Path) -> None:
    assert not list(find_lost(crashes, tmp_path / "runs"))


@pytest.mark.parametrize("forgotten", ["sync_directory", "_sync_file"])
def test_a_forgotten_sync_is_found(tmp_path: Path, forgotten: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(f"bcn.io.{forgotten}", lambda path: None)
        disk = record_run(tmp_path / "recorded")
    assert next(find_lost(find_crashes(disk), tmp_path / "left"))


def go_on(trees: Iterable[Tree], runs: Path, undisturbed: Path) -> None:
    """Train to the end from what is left, each time."""
    for tree in trees:
        train(recipe(), seed=0, runs=write_tree(tree, runs), threads=1)
        assert_same(runs / RUN, undisturbed / RUN)
        assert not list(runs.rglob("*.tmp"))
        shutil.rmtree(runs)


def test_a_sample_ends_the_same(disk: Disk, crashes: list[tuple[int, Tree]], tmp_path: Path) -> None:
    go_on((tree for _, tree in crashes[:: len(crashes) // SAMPLE]), tmp_path / "runs", disk.root)


@pytest.mark.nightly
def test_everything_that_can_be_left_ends_the_same(disk: Disk, crashes: list[tuple[int, Tree]], tmp_path: Path) -> None:
    go_on((tree for _, tree in crashes), tmp_path / "runs", disk.root)


ROWS = np.arange(1000, dtype=np.int32)


def write_rows(directory: Path) -> None:
    write_array(directory / "image.npy", [ROWS[:600], ROWS[600:]], shape=ROWS.shape, dtype=ROWS.dtype)


def test_a_cache_is_whole_or_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "recorded").mkdir()
    disk = Disk(tmp_path / "recorded")
    monkeypatch.setenv("BCN_CACHE", str(disk.root))
    with disk.recording():
        open_cache("set-v1", "train", write_rows)
    assert disk.final() == read_tree(disk.root)
    monkeypatch.setenv("BCN_CACHE", str(tmp_path / "left"))
    for _, tree in disk.crashes():
        write_tree(tree, tmp_path / "left")
        assert np.array_equal(open_cache("set-v1", "train", write_rows)["image"], ROWS)
        names = {path.name for path in (tmp_path / "left" / "set-v1").iterdir()}
        assert names - {"train.lock"} == {"train"}
        shutil.rmtree(tmp_path / "left")
