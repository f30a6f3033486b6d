"""metrics.jsonl: every damage is noticed, and a run that goes on has the curve of one that was never damaged."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.blobs import install, plain
from helpers.runs import assert_same

from bcn.training.event_log import EventLog
from bcn.training.interrupts import Interrupted
from bcn.training.loop import Trainer, train

EVENTS = [
    {"event": "train", "epoch": 1, "step": 100, "loss": 0.25, "rate": 1e-05},
    {"event": "epoch", "epoch": 1, "step": 150, "loss": 0.125, "val_loss": float("nan")},
    {"event": "epoch", "epoch": 2, "step": 300, "loss": 0.1},
]


@pytest.fixture(autouse=True)
def blobs(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch.setitem)


@pytest.fixture
def log(tmp_path: Path) -> EventLog:
    log = EventLog(tmp_path / "metrics.jsonl")
    for event in EVENTS:
        log.write(event)
    return log


def test_lines_are_json_that_others_read(log: EventLog) -> None:
    lines = [json.loads(line) for line in log.path.read_text().splitlines()]
    assert [{**line, "crc32": None} for line in map(repr_nan, lines)] == [
        {**event, "crc32": None} for event in map(repr_nan, EVENTS)
    ]
    assert list(map(repr_nan, EventLog(log.path).events())) == list(map(repr_nan, EVENTS))


def repr_nan(event: dict[str, object]) -> dict[str, object]:
    """NaN equals nothing, its name does."""
    return {key: str(value) if value != value else value for key, value in event.items()}


def test_no_flipped_bit_goes_unnoticed(log: EventLog, capsys: pytest.CaptureFixture[str]) -> None:
    content, expected = log.path.read_bytes(), list(map(repr_nan, EVENTS))
    for position in range(len(content)):
        for bit in range(8):
            damaged = bytearray(content)
            damaged[position] ^= 1 << bit
            log.path.write_bytes(damaged)
            events = list(map(repr_nan, log.events()))
            assert len(events) < len(expected), (position, bit)
            assert all(event in expected for event in events), (position, bit)
            # The last line without its end is one that a crash cut short, which is no damage.
            assert ("is damaged and left out" in capsys.readouterr().err) == (position < len(content) - 1)
            assert log.find_changed(log.lines)


def test_what_is_damaged_is_restored(log: EventLog, capsys: pytest.CaptureFixture[str]) -> None:
    content = log.path.read_bytes()
    for damaged in (b"", content[:-1], content[:40], content.replace(b"loss", b"lost"), b"\xff\x85\r\x0b" + content):
        log.path.write_bytes(damaged)
        log.restore(log.lines)
        assert log.path.read_bytes() == content
        assert "restored from the checkpoint" in capsys.readouterr().err


def test_lines_after_a_checkpoint_are_dropped_without_a_word(log: EventLog, capsys: pytest.CaptureFixture[str]) -> None:
    for left in ("", '{"event": "tra'):
        with open(log.path, "a") as file:
            file.write(left)
        log.restore(log.lines[:2])
        assert log.path.read_text() == "".join(log.lines)
        assert len(log.lines) == 2
    assert capsys.readouterr().err == ""


def stop_in_the_third_epoch(runs: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that is stopped at step 12 of 20, after the lines of two epochs."""
    step = Trainer.step

    def stopped(self: Trainer, *arguments: Any, **options: Any) -> torch.Tensor:
        if self.state.position.step == 12:
            raise Interrupted(15)
        return step(self, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "step", stopped)
        with pytest.raises(Interrupted):
            train(plain("smoke"), seed=0, runs=runs)
    (run,) = runs.iterdir()
    return run


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "a number": lambda content: content.replace(b'"step": 5', b'"step": 7'),
    "a key": lambda content: content.replace(b'"epoch": 1', b'"epoci": 1'),
    "a type": lambda content: content.replace(b'"step": 10', b'"step": []'),
    "emptied": lambda content: b"",
    "garbage": lambda content: bytes(len(content)),
    "half": lambda content: content[: len(content) // 2],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_reported_and_restored(
    tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = stop_in_the_third_epoch(tmp_path / "stopped", monkeypatch)
    content = (run / "metrics.jsonl").read_bytes()
    (run / "metrics.jsonl").write_bytes(DAMAGES[damage](content))
    assert (run / "metrics.jsonl").read_bytes() != content
    train(plain("smoke"), seed=0, runs=tmp_path / "stopped")
    assert "metrics.jsonl: damaged in line" in capsys.readouterr().err
    train(plain("smoke"), seed=0, runs=tmp_path / "undisturbed")
    assert_same(run, tmp_path / "undisturbed" / run.name)
    assert (run / "metrics.jsonl").read_bytes().startswith(content)


def test_a_file_that_is_emptied_while_the_run_goes_on_has_a_whole_curve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = Trainer.test

    def emptied(self: Trainer) -> dict[str, object]:
        assert self.run is not None
        self.run.log.path.write_text("")
        return test(self)

    monkeypatch.setattr(Trainer, "test", emptied)
    recipe = replace(plain("smoke"), epochs=3)
    assert [point["epoch"] for point in train(recipe, seed=0, runs=tmp_path)["curve"]] == [1, 2, 3]


def test_a_checkpoint_of_an_earlier_version_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no copy of the lines, and these no checksums."""
    load = torch.load
    run = stop_in_the_third_epoch(tmp_path / "stopped", monkeypatch)
    events = EventLog(run / "metrics.jsonl").events()
    later = {"event": "epoch", "epoch": 3, "step": 15, "loss": 1.0}
    (run / "metrics.jsonl").write_text("".join(json.dumps(event) + "\n" for event in [*events, later]))

    def without_copy(*arguments: Any, **options: Any) -> dict[str, object]:
        state = load(*arguments, **options)
        return {key: value for key, value in state.items() if key != "metrics"}

    monkeypatch.setattr(torch, "load", without_copy)
    train(plain("smoke"), seed=0, runs=tmp_path / "stopped")
    train(plain("smoke"), seed=0, runs=tmp_path / "undisturbed")
    assert_same(run, tmp_path / "undisturbed" / run.name)
