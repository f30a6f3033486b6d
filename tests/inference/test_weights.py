"""The evidence of shipped weights is recomputed: checksums, costs, and accuracy on images that no run has seen."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bcn.data.clevr_like.grammars import GRAMMARS
from bcn.data.clevr_like.make import make_clevr_like
from bcn.data.clevr_like.spec import SplitSpec
from bcn.data.dataset import Dataset
from bcn.data.registry import open_dataset
from bcn.data.vqa.load import open_questions
from bcn.data.vqa.vocabulary import Vocabulary
from bcn.inference.reasoner import Reasoner, load
from bcn.inference.release import card, evidence
from bcn.inference.shipped import WEIGHTS, list_weights
from bcn.paper.tables import find_recipe
from bcn.training.metrics import compute_metrics, evaluate

FRESH = 1000
LOCALISATION_SPREAD = 0.1
"""five standard errors of the root mean square error over so many images"""
RESULTS = Path(__file__).parents[2] / "results"


def test_shipped_weights_are_small() -> None:
    assert sum(path.stat().st_size for path in WEIGHTS.glob("*")) <= 18_000_000


@pytest.mark.parametrize("name", list_weights())
def test_the_evidence_of_shipped_weights_holds(name: str) -> None:
    entry = list_weights()[name]
    load(name)  # checks the checksum
    record = json.loads((RESULTS / entry["recipe"] / f"{entry['scale']}-seed{entry['seed']}.json").read_text())
    halved = {"test": entry["metrics"], **entry.get("tests", {})} if "dtype" in entry else None
    assert entry == {"file": entry["file"], **evidence(WEIGHTS / entry["file"], record, metrics=halved)}
    for kind, metric in entry["metrics"].items():  # float16 changes hardly any answer
        if halved and isinstance(metric, dict) and metric["total"]:
            trained = record["metrics"]["test"][kind]
            assert metric["total"] == trained["total"]
            assert abs(metric["correct"] - trained["correct"]) <= 0.01 * metric["total"] + 1, kind
    assert record["best_epoch"] in (entry["epoch"], None)
    family, row = name.split("/")
    recipe = find_recipe(entry["recipe"], entry["scale"])
    assert recipe.model.split("/")[0] == family
    assert entry["recipe"].split("/")[1] == row
    assert (WEIGHTS / f"{name.replace('/', '-')}.md").read_text() == card(name, entry, recipe)


def fresh_images(entry: dict[str, Any], reasoner: Reasoner, directory: Path) -> Dataset:
    """Images that no run has seen, but for STL-10's, of which there are no others than those of the index.

    Of CLEVR's a tenth as many, with ten questions about each in the words of the model.
    """
    if entry["data"] not in GRAMMARS:
        return open_dataset(entry["data"], "test", images=FRESH, seed=12345)
    pytest.importorskip("numba", reason="needs the extra render")
    spec = SplitSpec("test", seed=12345, version=entry["data"])
    make_clevr_like(directory, spec, FRESH // 10, done=lambda _: None)
    words, answers = reasoner.description["words"], reasoner.description["answers"]
    return open_questions(directory, "test", vocabulary=Vocabulary(tuple(words)), answers=answers)


def with_data() -> Iterator[Any]:
    """Names of weights, each with what its images need."""
    for name, entry in list_weights().items():
        yield pytest.param(name, marks=pytest.mark.data("stl10_binary") if entry["data"] == "stl10" else ())


def assert_as_good(measured: dict[str, Any], metrics: dict[str, Any]) -> None:
    for kind, metric in metrics.items():
        if isinstance(metric, dict) and metric.get("total") and measured[kind]["total"]:
            accuracy, total = metric["accuracy"], measured[kind]["total"]
            error = np.sqrt(max(accuracy * (1 - accuracy), 0.25 / total) / total)
            assert abs(measured[kind]["accuracy"] - accuracy) <= 5 * error + 1 / total, kind


@pytest.mark.parametrize("name", [name for name, entry in list_weights().items() if "tests" in entry])
def test_shipped_weights_are_as_good_on_fresh_images_of_further_tests(name: str) -> None:
    """By number of objects and by corruption; a tenth as many images of each."""
    model = load(name).model
    for test_set, metrics in list_weights()[name]["tests"].items():
        dataset = open_dataset(test_set, "test", images=FRESH // 10, seed=12345)
        assert_as_good(compute_metrics(evaluate(model, dataset, batch_size=20), dataset), metrics)


@pytest.mark.parametrize("name", list(with_data()))
def test_shipped_weights_are_as_good_on_fresh_images(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The accuracy lies within five standard errors of the index's."""
    entry, reasoner = list_weights()[name], load(name)
    if entry["data"] == "scaled-mnist-v1":
        request.getfixturevalue("mnist_sample")
    dataset = fresh_images(entry, reasoner, tmp_path)
    localise = "localisation" in entry["metrics"]
    measured = compute_metrics(evaluate(reasoner.model, dataset, batch_size=50, localise=localise), dataset)
    assert_as_good(measured, entry["metrics"])
    if localise:
        assert measured["localisation"] == pytest.approx(entry["metrics"]["localisation"], rel=LOCALISATION_SPREAD)
