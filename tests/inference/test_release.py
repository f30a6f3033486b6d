"""Releasing the weights of a run: what is written, and which runs are refused."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.records import make_metric
from helpers.small_weights import scene_v2_run

from bcn.cli.release import release as release_run
from bcn.data.registry import open_dataset
from bcn.data.sort_of_clevr_v2 import BY_CORRUPTION, BY_OBJECTS
from bcn.errors import BcnError
from bcn.inference.release import evidence, release
from bcn.inference.shipped import WEIGHTS, list_weights
from bcn.io import read_record, write_record
from bcn.paper.tables import find_recipe
from bcn.training.loop import train
from bcn.training.metrics import compute_metrics, evaluate
from bcn.training.recipe import from_json
from bcn.training.weights import load_model


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("runs")
    record = train(find_recipe("table3/multirn", "smoke"), seed=0, runs=runs)
    return Path(runs / record["run"])


def test_a_finished_run_is_released(run: Path, tmp_path: Path) -> None:
    assert release(run, directory=tmp_path) == "sort-of-clevr/multirn"
    entry = list_weights(tmp_path)["sort-of-clevr/multirn"]
    record = json.loads((run / "record.json").read_text())
    file = tmp_path / entry.pop("file")
    assert entry == evidence(file, record)
    assert entry["parameters"] == 345_074
    assert file.read_bytes() == (run / "best.safetensors").read_bytes()
    assert "345,074 parameters" in (tmp_path / "sort-of-clevr-multirn.md").read_text()


def test_a_run_is_released_in_half_of_the_bytes(run: Path, tmp_path: Path) -> None:
    assert release(run, half=True, directory=tmp_path) == "sort-of-clevr/multirn"
    entry = list_weights(tmp_path)["sort-of-clevr/multirn"]
    file = tmp_path / entry["file"]
    assert entry["dtype"] == "float16"
    assert file.stat().st_size < 0.52 * (run / "best.safetensors").stat().st_size
    model, _ = load_model(file)
    trained, _ = load_model(run)
    for name, tensor in trained.state_dict().items():
        rounded = tensor.half().float() if tensor.is_floating_point() else tensor
        assert torch.equal(model.state_dict()[name], rounded)
    test = open_dataset("sort-of-clevr-v1", "test", images=find_recipe("table3/multirn", "smoke").data.test)
    counted = compute_metrics(evaluate(model, test, batch_size=3), test)
    assert entry["metrics"]["all"] == counted["all"]
    assert "float16" in (tmp_path / "sort-of-clevr-multirn.md").read_text()


def test_weights_in_the_wild_are_released_with_every_test(tmp_path: Path) -> None:
    run = scene_v2_run()
    assert release(run, directory=tmp_path) == "sort-of-clevr/multirn-h-wild"
    entry = list_weights(tmp_path)["sort-of-clevr/multirn-h-wild"]
    metrics = json.loads((run / "record.json").read_text())["metrics"]
    sets = {*BY_OBJECTS.values(), *BY_CORRUPTION.values()}
    assert set(entry["tests"]) == set(metrics) - {"test"} == sets
    for test_set, groups in entry["tests"].items():
        assert groups == {group: metrics[test_set][group] for group in ("all", "unary", "binary", "ternary")}
    page = (tmp_path / "sort-of-clevr-multirn-h-wild.md").read_text()
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| sort-of-clevr-v2-")]
    assert [row[0].removeprefix("| sort-of-clevr-v2-") for row in rows] == [
        *(f"{objects}-objects" for objects in range(1, 13)),
        *sorted(BY_CORRUPTION),
    ]
    nine = metrics["sort-of-clevr-v2-9-objects"]
    assert rows[8][1] == f"{100 * nine['all']['accuracy']:.2f}"
    assert rows[8][-1] == f"{nine['all']['total']} |"


@pytest.fixture
def copied(run: Path, tmp_path: Path) -> Path:
    """A copy of the run, which a test may damage."""
    return Path(shutil.copytree(run, tmp_path / "run"))


def remove_weights(run: Path) -> None:
    for file in run.glob("*.safetensors"):
        file.unlink()


def damage(path: Path, **changes: Any) -> None:
    write_record(path, read_record(path, "") | changes)


def test_what_is_not_a_recipe_as_it_stands_is_refused(tmp_path: Path) -> None:
    recipe = replace(find_recipe("table3/multirn", "smoke"), epochs=1, curriculum_epochs=0)
    record = train(recipe, seed=0, runs=tmp_path)
    with pytest.raises(BcnError, match="as it is now"):
        release_run(tmp_path / record["run"])


def test_what_is_not_finished_is_refused(copied: Path, tmp_path: Path) -> None:
    (copied / "record.json").unlink()
    with pytest.raises(BcnError, match="not finished"):
        release(copied, directory=tmp_path / "weights")
    assert not (tmp_path / "weights").exists()


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "not a whole safetensors file": lambda run: os.truncate(run / "best.safetensors", 1000),
    "is of table2/bcn": lambda run: shutil.copyfile(WEIGHTS / "stl10-bcn.safetensors", run / "best.safetensors"),
    "is of table3/multirn, scale smoke, seed 0, epoch": lambda run: damage(run / "manifest.json", seed=7),
    "lacks run, metrics": lambda run: (run / "record.json").write_text("{}"),
    "the record of this run is not": lambda run: damage(run / "record.json", best_epoch=7),
    "no weights yet": remove_weights,
}


@pytest.mark.parametrize("refusal", DAMAGES)
def test_shipped_weights_survive_a_damaged_run(run: Path, copied: Path, tmp_path: Path, refusal: str) -> None:
    release(run, directory=tmp_path / "weights")
    before = {path.name: path.read_bytes() for path in (tmp_path / "weights").iterdir()}
    DAMAGES[refusal](copied)
    with pytest.raises(BcnError, match=refusal):
        release(copied, directory=tmp_path / "weights")
    assert {path.name: path.read_bytes() for path in (tmp_path / "weights").iterdir()} == before


def test_another_recipe_does_not_replace_shipped_weights(run: Path, tmp_path: Path) -> None:
    origin = {"data": "sort-of-clevr-v1", "recipe": "table3/multirn", "scale": "cpu", "seed": 2, "epoch": 9}
    metrics = {"all": make_metric(39, 40)}
    index = {"sort-of-clevr/multirn": {"file": "multirn.safetensors", "sha256": "0" * 64, "metrics": metrics, **origin}}
    (tmp_path / "index.json").write_text(json.dumps(index))
    with pytest.raises(BcnError, match="comes with the weights of table3/multirn, scale cpu, seed 2"):
        release(run, directory=tmp_path)
    assert list_weights(tmp_path) == index


def test_recipes_in_records_can_be_read_again(run: Path) -> None:
    record = json.loads((run / "record.json").read_text())
    assert from_json(record["recipe"]) == find_recipe("table3/multirn", "smoke")
