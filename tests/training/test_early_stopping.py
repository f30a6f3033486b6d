"""`patience`: a run ends when validation no longer becomes better, in the same epoch however it was started."""

import signal
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from helpers.blobs import install, plain
from helpers.runs import assert_same
from training.test_resume import die_after, start

from bcn.errors import BcnError
from bcn.training.loop import train
from bcn.training.overview import summarise
from bcn.training.recipe import Data, Recipe, fingerprint
from bcn.training.run import find_run, run_id
from bcn.training.weights import read_weights


@pytest.fixture(autouse=True)
def blobs(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch.setitem)


def still(patience: int) -> Recipe:
    """A learning rate that float32 rounds away: no epoch is better than the first."""
    recipe = plain("smoke")
    return replace(recipe, optim=replace(recipe.optim, lr=1e-12), epochs=6, patience=patience)


def test_it_stops_so_many_epochs_after_the_best(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = train(still(2), seed=0, runs=tmp_path, threads=1)
    path = tmp_path / run_id(still(2), 0)
    assert (record["best_epoch"], record["stopped_after"], record["steps"]) == (1, 3, 3 * 5)
    assert [entry["epoch"] for entry in record["curve"]] == [1, 2, 3]
    assert "epoch 3: not better in validation since epoch 1" in capsys.readouterr().err
    assert read_weights(path / "last.safetensors")[1]["epoch"] == 3
    assert summarise(path).epochs == "3/6"
    assert find_run(path).recipe.patience == 2


def test_an_epoch_that_is_better_is_waited_for(tmp_path: Path) -> None:
    learning = replace(still(2), optim=replace(still(2).optim, lr=0.02))
    record = train(learning, seed=0, runs=tmp_path, threads=1)
    scores = [(entry["accuracy"], -entry["val_loss"]) for entry in record["curve"]]
    assert scores[0] < max(scores)
    assert record["best_epoch"] == 1 + scores.index(max(scores))
    assert record.get("stopped_after", 6) == min(6, record["best_epoch"] + 2) == len(scores)


def test_a_killed_run_stops_in_the_same_epoch(tmp_path: Path) -> None:
    recipe, undisturbed, killed = still(2), tmp_path / "undisturbed", tmp_path / "killed"
    train(recipe, seed=0, runs=undisturbed, threads=1)
    for step, calls in ((7, 100), (4, 2000)):  # in epoch 2, and near the end of epoch 3
        begin = partial(train, recipe, seed=0, runs=killed, threads=1, save_minutes=0.0)
        assert start(begin, step, partial(die_after, calls)) == -signal.SIGKILL
    train(recipe, seed=0, runs=killed, threads=1)
    assert_same(killed / run_id(recipe, 0), undisturbed / run_id(recipe, 0))


def test_only_a_run_with_patience_has_another_name() -> None:
    recipe = plain("smoke")
    assert fingerprint(replace(recipe, patience=0)) == fingerprint(recipe) != fingerprint(replace(recipe, patience=1))


def test_what_cannot_stop_early_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BcnError, match=r"patience=-1 \(accepted: 0, which is off"):
        train(still(-1), seed=0, runs=tmp_path)
    with pytest.raises(BcnError, match=r"patience=2 and data.split=train\+val"):
        train(replace(still(2), data=Data("blobs", split="train+val")), seed=0, runs=tmp_path)
