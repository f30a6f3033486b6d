"""The leaderboard: its recipes, its page from made-up records, and the entry of a model from the guide's own block."""

import json
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from helpers.command import run_bcn
from helpers.records import cells, make_metric, write_record

from bcn.errors import BcnError
from bcn.models.registry import list_models
from bcn.paper.estimate import estimate_of
from bcn.paper.leaderboard import (
    Entry,
    budget_minutes,
    enter,
    find_entries,
    find_wild_entries,
    published_entries,
    write_leaderboard,
)
from bcn.paper.recipes.leaderboard import BUDGET_MINUTES, NUMBERS, SEEN
from bcn.paper.tables import find_recipe, list_recipes

ROOT = Path(__file__).parents[2]
ROWS = [name.split("/")[1] for name in list_recipes("leaderboard")]


def arities(unary: int, binary: int, ternary: int) -> dict[str, Any]:
    """Metrics of a test set, correct of 10,000 of each arity."""
    parts = {"unary": unary, "binary": binary, "ternary": ternary}
    metrics = {name: make_metric(correct, 10_000) for name, correct in parts.items()}
    return metrics | {"all": make_metric(unary + binary + ternary, 30_000)}


def write_run(results: Path, row: str, seed: int, test: dict[str, Any], tests: dict[str, Any], minutes: float) -> Path:
    path = write_record(results, f"leaderboard/{row}", seed, test, tests=tests)
    record = json.loads(path.read_text())
    record |= {"parameters": 345_000, "macs": 8_600_000, "train_cpu_seconds": 60 * minutes}
    path.write_text(json.dumps(record))
    return path


def test_every_model_of_the_protocol_has_its_rows() -> None:
    """On 9,800 scenes and on the stream, from pixels and from states; the paper's sizes apart, all models of both."""
    models = {find_recipe(f"leaderboard/{row}", "cpu").model for row in ROWS}
    others = {"rn-original", "rn-h", "mlp", "cce-mlp", "multirn-no-bcn"}
    assert models == set(list_models("sort-of-clevr/")) - {f"sort-of-clevr/{row}" for row in others}
    assert {row for row in ROWS if row.endswith("-stream")} == {f"{row}-stream" for row in ROWS if "-stream" not in row}


@pytest.mark.parametrize("row", ROWS)
def test_rows_differ_in_model_and_epochs_alone(row: str) -> None:
    ours, other = find_recipe(f"leaderboard/{row}", "cpu"), find_recipe("leaderboard/multirn", "cpu")
    same = ("optim", "batch_size", "curriculum_epochs", "augment", "auxiliary", "batch_of", "precision", "accumulate")
    assert all(getattr(ours, field) == getattr(other, field) for field in same)
    assert dict(ours.arguments).get("final_relu", True) == ("multirn" not in row or "rounds" in row)
    assert ours.data.name.endswith("-states") == ("-states" in row)
    assert ("-stream" in ours.data.name) == row.endswith("-stream")
    assert ours.paper == ()


@pytest.mark.parametrize("name", [*list_recipes("leaderboard"), *list_recipes("wild")])
def test_rows_keep_the_budget_by_what_was_measured(name: str) -> None:
    recipe = find_recipe(name, "cpu")
    budget = {"-wild": 150, "-hour": 60}.get(name[-5:], BUDGET_MINUTES)
    estimate = estimate_of(ROOT / "results", recipe)
    assert estimate is not None, "run `bcn table leaderboard --plan --jobs 2`, or `bcn table wild` with the same"
    assert estimate.threads == 1
    assert estimate.seconds <= 60 * budget
    assert budget_minutes(recipe) == budget


def test_the_page_gives_means_over_seeds_the_best_first(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    results, page = tmp_path / "results", tmp_path / "leaderboard.md"
    sets = {NUMBERS[6]: arities(9900, 9600, 7000), NUMBERS[9]: arities(9800, 8800, 5000)}
    write_run(results, "multirn", 0, arities(9900, 9700, 7000), sets, 20)
    write_run(results, "multirn", 1, arities(9900, 9500, 7200), sets, 25)
    others = {NUMBERS[6]: arities(9990, 9900, 8000), "sort-of-clevr-v2-soft": arities(9990, 9000, 8000)}
    write_run(results, "transformer", 0, arities(9990, 9900, 8000), others, 31)
    entries = find_entries(results)
    assert [entry.name for entry in entries[:2]] == ["transformer", "multirn"]
    assert [path.name for path in write_leaderboard(page, entries)] == ["leaderboard.md", "leaderboard.png"]
    main, binary = page.read_text().split("## Binary questions by number of objects")
    assert cells(main, "multirn")[1:6] == ["88.67 ± 0.00", "99.00 ± 0.00", "96.00 ± 1.41", "71.00 ± 1.41", "2"]
    assert cells(main, "multirn")[6:] == ["345,000", "8.60M", str(entries[1].recipe.epochs), "22.5 min"]
    assert cells(main, "transformer")[-1] == "31.0 min, over the budget"
    assert cells(main, "rn")[1:6] == ["-", "-", "-", "-", "0"]
    binary, ternary = binary.split("## Ternary questions by number of objects")
    by_number = dict(zip(NUMBERS, cells(binary, "multirn")[1:], strict=True))
    assert (by_number[6], by_number[9], by_number[7]) == ("96.0 ± 0.0", "88.0 ± 0.0", "-")
    ternary, corrupted = ternary.split("## Binary questions by corruption")
    assert "| model | exact | jpeg75 | soft | off-white | noise |" in corrupted
    assert cells(corrupted.split("## ")[0], "transformer")[1:] == ["99.0", "-", "90.0", "-", "-"]
    assert dict(zip(NUMBERS, cells(ternary, "transformer")[1:], strict=True))[6] == "80.0"
    assert "| model | *1* | 2 | 3 | 4 | 5 | 6 | 7 | 8 | *9* | *10* | *11* | *12* |" in binary
    assert list(SEEN) == [2, 3, 4, 5, 6, 7, 8]


def test_rows_in_the_wild_stand_apart_with_their_own_budget(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    results, page = tmp_path / "results", tmp_path / "page.md"
    path = write_run(
        results, "multirn", 0, arities(9900, 9700, 7000), {"sort-of-clevr-v2-soft": arities(1, 5000, 1)}, 20
    )
    record = json.loads(path.read_text())
    for row, minutes in (("multirn-h-wild", 149), ("multirn-h-wild-hour", 61)):
        own = {
            "recipe": json.loads(json.dumps(asdict(find_recipe(f"wild/{row}", "cpu")))),
            "train_cpu_seconds": 60 * minutes,
        }
        (results / "wild" / row).mkdir(parents=True)
        (results / "wild" / row / "cpu-seed0.json").write_text(json.dumps(record | own))
    wild = find_wild_entries(results)
    assert [entry.name for entry in wild[:2]] == ["multirn-h-wild", "multirn-h-wild-hour"]
    write_leaderboard(page, find_entries(results), wild)
    main, rest = page.read_text().split("## In the wild")
    assert "wild" not in main
    assert cells(rest.split("## ")[0], "multirn-h-wild")[-1] == "2.5 h"
    assert cells(rest.split("## ")[0], "multirn-h-wild-hour")[-1] == "61.0 min, over the budget"
    corrupted = rest.split("## Binary questions by corruption")[1].split("## ")[0]
    assert [cells(corrupted, row)[3] for row in ("multirn", "multirn-h-wild")] == ["50.0", "50.0"]


def test_published_results_stand_apart_with_their_source(tmp_path: Path) -> None:
    write_leaderboard(tmp_path / "page.md", find_entries(tmp_path))
    ours, published = (tmp_path / "page.md").read_text().split("## Published")
    for entry in published_entries():
        assert entry["name"] not in ours
        row = cells(published, entry["name"])
        assert row[1:4] == ["{:.2f} ± {:.2f}".format(*entry[arity]) for arity in ("unary", "binary", "ternary")]
        assert entry["url"] in row[4]
    assert not (tmp_path / "figures").exists()  # nothing was run


def test_the_page_is_what_the_records_say(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    write_leaderboard(tmp_path / "page.md", find_entries(ROOT / "results"), find_wild_entries(ROOT / "results"))
    page = ROOT / "docs" / "results" / "leaderboard.md"
    assert (tmp_path / "page.md").read_text() == page.read_text(), "run `bcn leaderboard`"


def test_somebody_enters_a_model_in_twenty_lines(tmp_path: Path) -> None:
    """The block of the guide, as it stands, in a process of its own."""
    pytest.importorskip("matplotlib")
    guide = (ROOT / "docs" / "guides" / "benchmark.md").read_text()
    (block,) = re.findall(r"^```python\n(.*?)^```", guide, re.S | re.M)
    assert len([line for line in block.splitlines() if line.strip()]) <= 20
    subprocess.run([sys.executable, "-c", block], cwd=tmp_path, check=True, capture_output=True)
    results, page = tmp_path / "results", tmp_path / "page.md"
    said = run_bcn("leaderboard", "--scale", "smoke", "--results", results, "--out", page)
    assert "linear" in said
    row = cells(page.read_text().split("## ")[0], "linear")
    records = [json.loads(path.read_text()) for path in (results / "leaderboard" / "linear").glob("smoke-seed*.json")]
    assert {record["seed"] for record in records} == {0, 1, 2}
    assert row[5:7] == ["3", f"{3 * 24 * 25 + 24 + (24 * 18 * 18 + 22 + 1) * 17:,}"]
    accuracies = [100 * record["metrics"]["test"]["all"]["accuracy"] for record in records]
    assert float(row[1].split()[0]) == pytest.approx(sum(accuracies) / 3, abs=0.01)


def test_a_directory_without_records_leaves_the_page_as_it_is(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("kept")
    with pytest.raises(BcnError, match="nowhere has no folder leaderboard"):
        run_bcn("leaderboard", "--results", tmp_path / "nowhere", "--out", page)
    assert page.read_text() == "kept"


def test_records_of_another_protocol_are_refused(tmp_path: Path) -> None:
    path = write_run(tmp_path, "multirn", 0, arities(1, 1, 1), {}, 1)
    record = json.loads(path.read_text())
    record["recipe"]["data"]["tests"] = []
    other = tmp_path / "leaderboard" / "mine" / "cpu-seed0.json"
    other.parent.mkdir()
    other.write_text(json.dumps(record))
    with pytest.raises(BcnError, match=r"leaderboard/mine was not tested by the protocol: train it with `enter`"):
        find_entries(tmp_path)
    assert asdict(find_recipe("leaderboard/multirn", "cpu"))["data"]["tests"]


def test_a_model_that_is_not_registered_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BcnError, match="model"):
        enter("mine/absent", epochs=1, scale="smoke", runs=tmp_path, results=tmp_path)
    assert not list(tmp_path.iterdir())
    assert all(isinstance(entry, Entry) for entry in find_entries(tmp_path))
