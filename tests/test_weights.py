"""What the index of the shipped weights says is computed again: checksums, counts, and accuracy on fresh images."""

import json

import numpy as np
import pytest

from bcn.ask import WEIGHTS, load, shipped
from bcn.bench.count import count_parameters
from bcn.data.registry import open_dataset
from bcn.data.stl10 import locate_stl10
from bcn.engine.evaluate import evaluate, metrics
from bcn.engine.recipe import from_json
from bcn.engine.train import train
from bcn.errors import BcnError
from bcn.paper.recipes import find_recipe
from bcn.paper.ship import card, evidence, ship

FRESH = 1000


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    runs = tmp_path_factory.mktemp("runs")
    record = train(find_recipe("table3/multirn", "smoke"), seed=0, runs=runs)
    return runs / record["run"]


def test_a_finished_run_is_shipped(run, tmp_path):
    assert ship(run, directory=tmp_path) == "sort-of-clevr/multirn"
    entry = shipped(tmp_path)["sort-of-clevr/multirn"]
    record = json.loads((run / "record.json").read_text())
    file = tmp_path / entry.pop("file")
    assert entry == evidence("sort-of-clevr/multirn", file, record)
    assert entry["parameters"] == 345_074
    assert file.read_bytes() == (run / "best.safetensors").read_bytes()
    assert "345,074 parameters" in (tmp_path / "sort-of-clevr-multirn.md").read_text()


def test_what_is_not_a_recipe_as_it_stands_is_refused(run, tmp_path):
    record = json.loads((run / "record.json").read_text())
    try:
        (run / "record.json").write_text(json.dumps({**record, "overridden": True}))
        with pytest.raises(BcnError, match="--set"):
            ship(run, directory=tmp_path)
        (run / "record.json").unlink()
        with pytest.raises(BcnError, match="not finished"):
            ship(run, directory=tmp_path)
    finally:
        (run / "record.json").write_text(json.dumps(record))
    assert not shipped(tmp_path)


def test_shipped_weights_are_small():
    assert sum(path.stat().st_size for path in WEIGHTS.glob("*")) <= 10_000_000


@pytest.mark.parametrize("name", shipped())
def test_the_evidence_of_shipped_weights_holds(name):
    entry = shipped()[name]
    reasoner = load(name)  # checks the checksum
    assert (WEIGHTS / entry["file"]).stat().st_size == entry["bytes"]
    assert count_parameters(reasoner.model) == entry["parameters"]
    assert reasoner.description["recipe"] == entry["recipe"]
    assert find_recipe(entry["recipe"], entry["scale"]).model == name
    assert (WEIGHTS / f"{name.replace('/', '-')}.md").read_text() == card(name, entry)


@pytest.mark.parametrize("name", shipped())
def test_shipped_weights_are_as_good_on_fresh_images(name):
    """Images that no run has seen: the accuracy lies within five standard errors of the index's."""
    entry, reasoner = shipped()[name], load(name)
    if entry["data"] == "stl10" and locate_stl10() is None:
        pytest.skip("needs stl10_binary under BCN_DATA or BCN_CACHE")
    dataset = open_dataset(entry["data"], "test", images=FRESH, seed=12345)
    found = metrics(evaluate(reasoner.model, dataset, batch=50, localise=False), dataset)
    for kind, figure in entry["metrics"].items():
        if isinstance(figure, dict) and "accuracy" in figure:
            accuracy, total = figure["accuracy"], found[kind]["total"]
            error = np.sqrt(max(accuracy * (1 - accuracy), 0.25 / total) / total)
            assert abs(found[kind]["accuracy"] - accuracy) <= 5 * error + 1 / total, kind


def test_recipes_in_records_can_be_read_again(run):
    record = json.loads((run / "record.json").read_text())
    assert from_json(record["recipe"]) == find_recipe("table3/multirn", "smoke")
