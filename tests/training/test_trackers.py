"""`--log`: the numbers and pictures of a run in what people watch runs with, each where it is installed."""

import json
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.command import exit_code
from PIL import Image

from bcn.errors import BcnError
from bcn.inference.pictures import draw_pictures
from bcn.paper.tables import find_recipe
from bcn.training.loop import train
from bcn.training.recipe import Recipe
from bcn.training.run import run_id
from bcn.training.trackers import TRACKERS, Watcher, open_watcher


@pytest.fixture
def recipe() -> Recipe:
    recipe = find_recipe("table3/multirn", "smoke")
    return replace(recipe, data=replace(recipe.data, train=16, val=8, test=8), epochs=2)


def watch(log: str, recipe: Recipe, runs: Path) -> Path:
    """The directory of a run that was watched."""
    run = runs / run_id(recipe, 0)
    train(recipe, seed=0, runs=runs, threads=1, watcher=open_watcher(log, run, draw_pictures))
    return run


def epochs(run: Path) -> Iterator[tuple[int, float]]:
    """Step and validation loss of each epoch, from metrics.jsonl."""
    for line in (run / "metrics.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event["event"] == "epoch":
            yield event["step"], event["val_loss"]


def test_tensorboard_has_numbers_and_pictures(tmp_path: Path, recipe: Recipe) -> None:
    reader = "tensorboard.backend.event_processing.event_accumulator"
    accumulator = pytest.importorskip(reader, reason="needs the extra tensorboard")
    run = watch("tensorboard", recipe, tmp_path)
    written = accumulator.EventAccumulator(str(run / "tensorboard"))
    written.Reload()
    scalars = [(event.step, event.value) for event in written.Scalars("epoch/val_loss")]
    assert scalars == [(step, pytest.approx(value, rel=1e-6)) for step, value in epochs(run)]
    assert {name: len(written.Images(name)) for name in written.Tags()["images"]} == {"confusion": 2, "activation": 2}


def test_trackio_has_numbers_and_pictures(tmp_path: Path, recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    trackio = pytest.importorskip("trackio", reason="needs trackio")
    monkeypatch.setattr("trackio.utils.TRACKIO_DIR", tmp_path / "trackio")
    monkeypatch.setattr("trackio.sqlite_storage.TRACKIO_DIR", tmp_path / "trackio")
    run = watch("trackio", recipe, tmp_path)
    assert trackio.context_vars.current_run.get() is None
    (file,) = tmp_path.glob("trackio/bcn.db")
    rows = sqlite3.connect(file).execute("select step, metrics, run_name from metrics order by id").fetchall()
    assert {name for _, _, name in rows} == {run.name}
    values = [(step, json.loads(values)) for step, values, _ in rows]
    losses = [(step, value["epoch/val_loss"]) for step, value in values if "epoch/val_loss" in value]
    assert losses == list(epochs(run))
    assert sum("activation" in value and "confusion" in value for _, value in values) == 2


def test_wandb_writes_offline(tmp_path: Path, recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb", reason="needs wandb")
    monkeypatch.delenv("WANDB_MODE", raising=False)
    run = watch("wandb", recipe, tmp_path)
    (folder,) = run.glob("wandb/offline-run-*")
    assert (folder / f"run-{run.name}.wandb").stat().st_size > 0
    assert len(list(folder.glob("files/media/images/*.png"))) == 4


@pytest.mark.parametrize("name", TRACKERS)
def test_what_is_not_installed_is_named_before_anything_is_written(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in (name, "torch.utils.tensorboard"):
        monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    assert exit_code("train", "table3/mlp", "--scale", "smoke", "--runs", tmp_path / "runs", "--log", name) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"bcn: --log {name} needs the packages {name} and matplotlib: pip install ")
    assert not (tmp_path / "runs").exists()


def test_unknown_names_are_answered(tmp_path: Path) -> None:
    with pytest.raises(BcnError, match="unknown log 'tensorbord': did you mean 'tensorboard'"):
        open_watcher("tensorbord", tmp_path, draw_pictures)
    assert open_watcher("none", tmp_path, draw_pictures).tracker is None


def test_pictures_leave_a_run_as_it_is(tmp_path: Path, recipe: Recipe) -> None:
    """The same weights, whether somebody watches or not; pictures of every tenth of the run."""
    shown: list[tuple[int, dict[str, tuple[int, int]]]] = []

    class Watching:
        def log(self, values: dict[str, float], step: int) -> None:
            assert values

        def show(self, pictures: dict[str, Image.Image], step: int) -> None:
            shown.append((step, {name: picture.size for name, picture in pictures.items()}))

        def close(self) -> None:
            shown.append((-1, {}))

    train(recipe, seed=0, runs=tmp_path / "alone", threads=1)
    train(recipe, seed=0, runs=tmp_path / "seen", threads=1, watcher=Watcher(Watching(), draw_pictures))
    one, other = (tmp_path / runs / run_id(recipe, 0) / "last.safetensors" for runs in ("alone", "seen"))
    assert one.read_bytes() == other.read_bytes()
    steps, pictures = zip(*shown, strict=True)
    assert steps == (8, 16, -1)
    assert pictures[0]["activation"] == (4 * 300 + 3 * 8, 300)
    assert pictures[0]["confusion"][0] == pictures[0]["confusion"][1] > 100
