"""Runs that are stopped: by kill -9 at any moment, by Ctrl-C, by SIGTERM. All end as if nothing had happened."""

import json
import multiprocessing
import os
import pty
import random
import re
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from helpers.blobs import SIZES, install, normed, plain
from helpers.runs import assert_same
from torch import Tensor, nn

from bcn.cli import main
from bcn.data.dataset import Batch
from bcn.errors import BcnError
from bcn.paper.tables import find_recipe
from bcn.training.interrupts import Interrupted
from bcn.training.loop import Trainer, train
from bcn.training.progress import Progress
from bcn.training.recipe import Recipe
from bcn.training.run import find_run, run_id

FORK = multiprocessing.get_context("fork")  # a new interpreter would spend seconds on importing torch


@pytest.fixture(autouse=True)
def blobs(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch.setitem)


def multirn() -> Recipe:
    recipe = find_recipe("table3/multirn", "smoke")
    return replace(recipe, data=replace(recipe.data, train=20), optim=replace(recipe.optim, ema_decay=0.9), epochs=3)


def muon() -> Recipe:
    recipe = multirn()
    return replace(recipe, optim=replace(recipe.optim, name="muon", momentum=0.9))


def start(target: Callable[[], object], at_step: int, then: Callable[[], None]) -> int:
    """The exit code of a process that does something to itself as it begins a step: from outside one would be late."""
    step = Trainer.step

    def counted(self: Trainer, loss: nn.Module, batch: Batch, *, answers: int) -> Tensor:
        nonlocal at_step
        at_step -= 1
        if at_step == 0:
            then()
        return step(self, loss, batch, answers=answers)

    def run() -> None:
        Trainer.step = counted  # type: ignore[method-assign, assignment]
        target()

    process = FORK.Process(target=run)
    process.start()
    process.join()
    assert process.exitcode is not None
    return process.exitcode


def die_after(calls: int) -> None:
    """kill -9 after so many calls of functions: anywhere in a step, or in the writing of a checkpoint."""

    def counted(*event: object) -> None:
        nonlocal calls
        calls -= 1
        if calls < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(counted)


@pytest.mark.parametrize(
    "recipe",
    [multirn, muon, lambda: replace(normed("smoke"), epochs=12)],
    ids=["relation", "Muon", "classifier"],
)
def test_killed_at_random_steps_it_ends_bit_equal(tmp_path: Path, recipe: Callable[[], Recipe]) -> None:
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    name = run_id(recipe(), 0)
    total = train(recipe(), seed=0, runs=undisturbed, threads=1)["steps"]
    draw = random.Random(0)
    for minutes in (0.0, 5.0, 0.0, 0.0005, 0.0):  # a checkpoint after every step, after some, at the ends of epochs
        step, calls = draw.randint(1, total // 6), draw.randint(0, 5000)
        begin = partial(train, recipe(), seed=0, runs=killed, threads=1, save_minutes=minutes)
        assert start(begin, step, partial(die_after, calls)) == -signal.SIGKILL
    assert not (killed / name / "record.json").exists()
    train(recipe(), seed=0, runs=killed, threads=1)
    assert_same(killed / name, undisturbed / name)


@pytest.mark.usefixtures("sighup_heeded")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_saves_and_tells_how_to_go_on(
    tmp_path: Path,
    number: signal.Signals,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    arguments = ["bcn", "train", "blobs/normed", "--scale", "smoke", "--runs", str(tmp_path / "runs"), "--threads", "1"]
    monkeypatch.setattr(sys, "argv", arguments)
    assert start(main, 7, lambda: os.kill(os.getpid(), number)) == code
    said = capfd.readouterr().err
    match = re.search(r"stopped by (\w+); go on with: (.*)", said)
    assert match is not None
    assert match[1] == number.name
    assert match[2].split() == arguments
    (run,) = (tmp_path / "runs").iterdir()
    (newest,) = sorted(int(path.stem.split("-")[1]) for path in (run / "checkpoint").glob("*.json"))[-1:]
    assert newest == 7  # the very step, though no checkpoint was due
    train(normed("smoke"), seed=0, runs=tmp_path / "runs")
    train(normed("smoke"), seed=0, runs=tmp_path / "undisturbed", threads=1)
    assert_same(run, tmp_path / "undisturbed" / run.name)
    assert json.loads((run / "record.json").read_text())["sessions"] == 2


@pytest.mark.usefixtures("sighup_heeded")
def test_a_closed_terminal_saves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Printing to it is an error from then on, which must not keep the run from saving."""
    monkeypatch.setattr("bcn.training.progress.PLAIN_SECONDS", 0.0)
    monkeypatch.setattr(sys, "argv", ["bcn", "train", "blobs/normed", "--scale", "smoke", "--runs", str(tmp_path)])
    child, terminal = pty.fork()
    if child == 0:  # the leader of a session with that terminal, as a shell's command
        sys.stdout, sys.stderr = (os.fdopen(stream, "w") for stream in (1, 2))
        step = Trainer.step

        def wait_for_signal(self: Trainer, *arguments: Any, **options: Any) -> Tensor:
            if self.state.position.step == 7:
                handler = signal.getsignal(signal.SIGHUP)
                sys.stderr.write("at step 7\n")
                sys.stderr.flush()
                while signal.getsignal(signal.SIGHUP) is handler:  # pause() would miss a signal that came before it
                    time.sleep(0.01)
            return step(self, *arguments, **options)

        Trainer.step = wait_for_signal  # type: ignore[method-assign]
        try:
            main()
        except SystemExit as exit:
            os._exit(exit.code)  # type: ignore[arg-type]
        finally:
            os._exit(1)
    said = b""
    while b"at step 7" not in said:
        said += os.read(terminal, 1024)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 129
    assert list(tmp_path.glob("*/checkpoint/step-00000008.json"))


def test_nohup_is_respected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert start(partial(train, plain("smoke"), seed=0, runs=tmp_path), 7, hang_up) == 0
    finally:
        signal.signal(signal.SIGHUP, before)
    assert list(tmp_path.glob("*/record.json"))


def hang_up() -> None:
    os.kill(os.getpid(), signal.SIGHUP)


def stop_in_end_epoch(
    end_epoch: Callable[[Trainer, Progress], None],
    stopped_by: type[BaseException],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A run that this way of validating stops after one line has told of an epoch; it goes on and ends the same."""
    recipe = plain("smoke")
    train(recipe, seed=0, runs=tmp_path / "undisturbed")
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "end_epoch", end_epoch)
        with pytest.raises(stopped_by):
            train(recipe, seed=0, runs=tmp_path / "stopped")
    (run,) = (tmp_path / "stopped").iterdir()
    assert [event["epoch"] for event in find_run(run).log.events()] == [1]
    train(recipe, seed=0, runs=tmp_path / "stopped")
    assert_same(run, tmp_path / "undisturbed" / run.name)


def test_a_signal_during_validation_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    end_epoch = Trainer.end_epoch

    def interrupted(self: Trainer, progress: Progress) -> None:
        if self.state.position.epoch == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        end_epoch(self, progress)

    stop_in_end_epoch(interrupted, Interrupted, tmp_path, monkeypatch)


def test_an_epoch_that_is_validated_again_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped after the line of an epoch and before its checkpoint, with a checkpoint of its last step there."""
    end_epoch = Trainer.end_epoch

    def stopped(self: Trainer, progress: Progress) -> None:
        self.save()
        end_epoch(self, progress)
        raise KeyboardInterrupt

    stop_in_end_epoch(stopped, KeyboardInterrupt, tmp_path, monkeypatch)


def test_what_was_removed_of_a_finished_run_is_written_again(tmp_path: Path) -> None:
    recipe = plain("smoke")
    train(recipe, seed=0, runs=tmp_path / "undisturbed")
    train(recipe, seed=0, runs=tmp_path / "removed")
    (run,) = (tmp_path / "removed").iterdir()
    for name in ("record.json", "best.safetensors", "last.safetensors"):
        (run / name).unlink()
    train(recipe, seed=0, runs=tmp_path / "removed")
    assert_same(run, tmp_path / "undisturbed" / run.name)


def test_a_test_set_that_does_not_fit_is_refused_at_once(tmp_path: Path) -> None:
    recipe = find_recipe("table3/mlp", "smoke")
    recipe = replace(recipe, data=replace(recipe.data, tests=("sort-of-clevr-v1", "blobs")))
    with pytest.raises(BcnError, match="cannot read"):
        train(recipe, seed=0, runs=tmp_path)
    assert not list(tmp_path.iterdir())


def train_without_test(recipe: Recipe, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run whose training is done and whose test failed."""
    test = Trainer.test
    monkeypatch.setattr(Trainer, "test", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        train(recipe, seed=0, runs=runs)
    monkeypatch.setattr(Trainer, "test", test)


def test_a_damaged_newest_checkpoint_changes_nothing_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = normed("smoke")
    train(recipe, seed=0, runs=tmp_path / "undisturbed")
    train_without_test(recipe, tmp_path / "damaged", monkeypatch)
    (run,) = (tmp_path / "damaged").iterdir()
    newest = max((run / "checkpoint").glob("*.pt"))
    newest.write_bytes(newest.read_bytes()[:-100])
    with open(run / "metrics.jsonl", "a") as file:
        file.write('{"event": "tra')  # a line that a crash cut short
    train(recipe, seed=0, runs=tmp_path / "damaged")
    assert f"{newest.stem} is damaged" in capsys.readouterr().err
    assert_same(run, tmp_path / "undisturbed" / run.name)


def test_other_data_is_not_trained_on_unnoticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = plain("smoke")
    train_without_test(recipe, tmp_path, monkeypatch)
    monkeypatch.setitem(SIZES, "test", 98)
    with pytest.raises(BcnError, match=r"began with other data \(test\)"):
        train(recipe, seed=0, runs=tmp_path)


def test_two_processes_do_not_train_the_same_run(tmp_path: Path) -> None:
    recipe = plain("smoke")
    run = tmp_path / run_id(recipe, 0)
    run.mkdir()
    with FileLock(run / ".lock"), pytest.raises(BcnError, match="another process is training"):
        train(recipe, seed=0, runs=tmp_path)
    train(recipe, seed=0, runs=tmp_path)
