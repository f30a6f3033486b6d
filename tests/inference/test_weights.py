"""The evidence of shipped weights is recomputed: checksums, costs, and accuracy on images that no run has seen."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bcn.data.clevr_like.make import Order, make_clevr_like
from bcn.data.dataset import Dataset
from bcn.data.registry import open_dataset
from bcn.data.vqa.load import open_questions
from bcn.data.vqa.vocabulary import Vocabulary
from bcn.errors import BcnError
from bcn.inference.reasoner import WEIGHTS, Reasoner, list_weights, load
from bcn.inference.release import card, evidence, release
from bcn.paper.tables import find_recipe
from bcn.training.loop import train
from bcn.training.metrics import compute_metrics, evaluate
from bcn.training.recipe import from_json

FRESH = 1000
LOCALISATION_SPREAD = 0.1
"""five standard errors of the root mean square error over so many images"""
RESULTS = Path(__file__).parents[2] / "results"


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


@pytest.fixture
def copied(run: Path, tmp_path: Path) -> Path:
    """A copy of the run, which a test may damage."""
    return Path(shutil.copytree(run, tmp_path / "run"))


def remove_weights(run: Path) -> None:
    for file in run.glob("*.safetensors"):
        file.unlink()


def damage(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_what_is_not_a_recipe_as_it_stands_is_refused(copied: Path, tmp_path: Path) -> None:
    damage(copied / "manifest.json", overridden=True)
    with pytest.raises(BcnError, match="--set"):
        release(copied, directory=tmp_path / "weights")
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
    index = {"sort-of-clevr/multirn": {"recipe": "table3/multirn", "scale": "cpu", "seed": 2, "epoch": 9}}
    (tmp_path / "index.json").write_text(json.dumps(index))
    with pytest.raises(BcnError, match="comes with the weights of table3/multirn, scale cpu, seed 2"):
        release(run, directory=tmp_path)
    assert list_weights(tmp_path) == index


def test_shipped_weights_are_small() -> None:
    assert sum(path.stat().st_size for path in WEIGHTS.glob("*")) <= 10_000_000


@pytest.mark.parametrize("name", list_weights())
def test_the_evidence_of_shipped_weights_holds(name: str) -> None:
    entry = list_weights()[name]
    load(name)  # checks the checksum
    record = json.loads((RESULTS / entry["recipe"] / f"{entry['scale']}-seed{entry['seed']}.json").read_text())
    assert entry == {"file": entry["file"], **evidence(WEIGHTS / entry["file"], record)}
    assert record["best_epoch"] in (entry["epoch"], None)
    family, row = name.split("/")
    recipe = find_recipe(entry["recipe"], entry["scale"])
    assert recipe.model.split("/")[0] == family
    assert entry["recipe"].split("/")[1] == row
    assert (WEIGHTS / f"{name.replace('/', '-')}.md").read_text() == card(
        name, entry, find_recipe(entry["recipe"], entry["scale"])
    )


def fresh_images(entry: dict[str, Any], reasoner: Reasoner, directory: Path) -> Dataset:
    """Images that no run has seen, but for STL-10's, of which there are no others than those of the index.

    Of CLEVR's a tenth as many, with ten questions about each in the words of the model.
    """
    if entry["data"] != "clevr-like-v1":
        return open_dataset(entry["data"], "test", images=FRESH, seed=12345)
    pytest.importorskip("numba", reason="needs the extra render")
    make_clevr_like(directory, Order("test", seed=12345), FRESH // 10, done=lambda _: None)
    words, answers = reasoner.description["words"], reasoner.description["answers"]
    return open_questions(directory, "test", vocabulary=Vocabulary(tuple(words)), answers=answers)


def with_data() -> Iterator[Any]:
    """Names of weights, each with what its images need."""
    for name, entry in list_weights().items():
        yield pytest.param(name, marks=pytest.mark.data("stl10_binary") if entry["data"] == "stl10" else ())


@pytest.mark.parametrize("name", list(with_data()))
def test_shipped_weights_are_as_good_on_fresh_images(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The accuracy lies within five standard errors of the index's."""
    entry, reasoner = list_weights()[name], load(name)
    if entry["data"] == "scaled-mnist-v1":
        request.getfixturevalue("mnist_sample")
    dataset = fresh_images(entry, reasoner, tmp_path)
    localise = "localisation" in entry["metrics"]
    measured = compute_metrics(evaluate(reasoner.model, dataset, batch_size=50, localise=localise), dataset)
    for kind, metric in entry["metrics"].items():
        if isinstance(metric, dict) and "accuracy" in metric:
            accuracy, total = metric["accuracy"], measured[kind]["total"]
            error = np.sqrt(max(accuracy * (1 - accuracy), 0.25 / total) / total)
            assert abs(measured[kind]["accuracy"] - accuracy) <= 5 * error + 1 / total, kind
    if localise:
        assert measured["localisation"] == pytest.approx(entry["metrics"]["localisation"], rel=LOCALISATION_SPREAD)


def test_recipes_in_records_can_be_read_again(run: Path) -> None:
    record = json.loads((run / "record.json").read_text())
    assert from_json(record["recipe"]) == find_recipe("table3/multirn", "smoke")
