"""Tables from records: metrics, intervals, dashes, and what is left out."""

import csv
import json
from dataclasses import replace
from io import StringIO
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest
from helpers.records import cells, make_metric, questions, write_record

from bcn.errors import BcnError
from bcn.paper.records import read_result, results_of
from bcn.paper.render import broadcast_markdown, markdown, write_table
from bcn.paper.rows import lines_of
from bcn.paper.tables import TABLES, find_recipe, find_table
from bcn.training.recipe import Auxiliary, Recipe, Scale


def wilson_by_hand(correct: int, total: int) -> tuple[float, float]:
    """The bounds are where the observed share is 1.96 standard errors away: solved by bisection."""

    def bound(low: float, high: float, sign: int) -> float:
        for _ in range(100):
            middle = (low + high) / 2
            distance = (correct / total - middle) * sign
            if distance > 1.959963984540054 * (middle * (1 - middle) / total) ** 0.5:
                low, high = (middle, high) if sign > 0 else (low, middle)
            else:
                low, high = (low, middle) if sign > 0 else (middle, high)
        return low

    return bound(0, correct / total, 1), bound(correct / total, 1, -1)


def test_a_row_is_mean_spread_and_interval_beside_the_paper(tmp_path: Path) -> None:
    for seed, correct in enumerate((9650, 9700, 9690)):
        write_record(tmp_path, "table3/multirn-h", seed, questions(correct, 9990))
    text = markdown(find_table("table3"), "cpu", lines_of(find_table("table3"), "cpu", tmp_path))
    low, high = (100 * bound for bound in wilson_by_hand(9680, 10_000))
    expected = f"{mean((96.5, 97.0, 96.9)):.2f} ± {stdev((96.5, 97.0, 96.9)):.2f} [{low:.2f}, {high:.2f}]"
    row = cells(text, "multirn-h")
    assert row[1:3] == ["96.7", expected]
    assert row[3] == "99.9"
    assert row[4].startswith("99.90 ± 0.00 [")
    assert row[5:] == ["3", "345K", "345,074", "23.59M", "20.0 min"]


def test_scenes_with_fewer_objects_have_columns_that_the_paper_has_not(tmp_path: Path) -> None:
    fewer = {f"sort-of-clevr-v1-{objects}-objects": questions(9000 + objects, 1) for objects in (2, 3, 4, 5)}
    write_record(tmp_path, "stream/multirn-h-stream", 0, questions(9910, 9990), tests=fewer)
    text = markdown(find_table("stream"), "cpu", lines_of(find_table("stream"), "cpu", tmp_path))
    heading = next(line for line in text.splitlines() if line.startswith("| row |"))
    found = dict(zip(heading.strip("|").split(" | "), cells(text, "multirn-h-stream"), strict=True))
    assert found["relational, % paper"] == "96.7"
    for objects in (2, 3, 4, 5):
        assert found[f"relational, {objects} objects, % ours"].startswith(f"90.0{objects} [")
        assert f"relational, {objects} objects, % paper" not in found
    assert find_recipe("stream/multirn-h-stream", "smoke").data.tests == tuple(fewer)


def test_curves_leave_out_answers_of_epochs_that_asked_for_none(tmp_path: Path) -> None:
    def taught(recipe: Recipe) -> Recipe:
        return replace(recipe, auxiliary=Auxiliary(1, 1))

    path = write_record(tmp_path, "table4/multirn", 0, {"all": make_metric(1, 2)}, change=taught)
    assert ["accuracy" in entry for entry in read_result(path).curve] == [False, False, True]
    assert [entry["loss"] for entry in read_result(path).curve] == [1, 1 / 2, 1 / 3]


def test_what_a_bcn_carries_stands_below_its_table(tmp_path: Path) -> None:
    path = write_record(tmp_path, "table3/multirn-h", 3, questions(9000, 9000))
    probe: dict[str, Any] = {"active_channels": 200, "channels": 256, "vector_share": 0.0678}
    vectors = {"as_trained": 0.9, "mean_vector": 0.8, "shuffled_vector": 0.7}
    probe |= {vector: {"accuracy": 0.95, "relational": value} for vector, value in vectors.items()}
    path.write_text(json.dumps(json.loads(path.read_text()) | {"broadcast": {"test": probe}}))
    text = broadcast_markdown(lines_of(find_table("table3"), "cpu", tmp_path))
    assert cells(text, "multirn-h, seed 3")[1:] == ["200 of 256", "0.068", "90.00 (relational)", "80.00", "70.00"]
    assert broadcast_markdown(lines_of(find_table("table1"), "cpu", tmp_path)) == ""


def test_what_was_not_run_is_a_dash_and_never_a_figure(tmp_path: Path) -> None:
    write_record(tmp_path, "table3/multirn-h", 0, questions(9000, 9000))
    text = markdown(find_table("table3"), "cpu", lines_of(find_table("table3"), "cpu", tmp_path))
    for row in ("rn-published", "rn", "mlp"):
        assert cells(text, row)[2] == cells(text, row)[4] == "-"
        assert cells(text, row)[5] == "0"
    assert "±" not in cells(text, "multirn-h")[2]


def test_runs_of_a_changed_recipe_are_left_out_and_named(tmp_path: Path) -> None:
    write_record(tmp_path, "table3/multirn-h", 0, questions(9000, 9000), change=lambda r: replace(r, batch_size=7))
    write_record(tmp_path, "table3/multirn-h", 1, questions(9000, 9000), change=lambda r: replace(r, epochs=99))
    write_record(tmp_path, "table3/multirn-h", 2, questions(8000, 9000), change=lambda r: replace(r, paper=()))
    counted, left_out = results_of(tmp_path, find_recipe("table3/multirn-h", "cpu"))
    assert [result.seed for result in counted] == [2], "other words for the same run do not matter"
    assert [path.name for path in left_out] == ["cpu-seed0.json", "cpu-seed1.json"]
    text = markdown(find_table("table3"), "cpu", lines_of(find_table("table3"), "cpu", tmp_path))
    assert "`cpu-seed0.json` of `multirn-h`, `cpu-seed1.json` of `multirn-h`" in text


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("scale", ["cpu", "paper"])
def test_every_departure_stands_under_its_table(table: str, scale: Scale, tmp_path: Path) -> None:
    lines = lines_of(find_table(table), scale, tmp_path)
    text = markdown(find_table(table), scale, lines).lower()
    for line in lines:
        assert bool(line.departures) == bool(line.recipe) or find_table(table).published is None
        for departure in line.departures.values():
            assert departure.lower() in text


def test_localisation_and_the_columns_of_other_test_sets(tmp_path: Path) -> None:
    figures = {"all": make_metric(9750, 10_000), "localisation": 0.02345}
    write_record(tmp_path, "table1/bcn", 0, figures)
    write_record(tmp_path, "table1/bcn", 1, {**figures, "localisation": 0.02445})
    text = markdown(find_table("table1"), "cpu", lines_of(find_table("table1"), "cpu", tmp_path))
    assert cells(text, "bcn")[2].startswith("97.50 ± 0.00 [")
    assert cells(text, "bcn")[3:5] == ["0.023", "0.0239 ± 0.0007"]
    others = dict(zip(find_recipe("deformation/bcn", "cpu").data.tests, (9000, 8000, 7000, 6000), strict=True))
    tests = {name: {"all": make_metric(correct, 10_000)} for name, correct in others.items()}
    write_record(tmp_path, "deformation/bcn", 0, {"all": make_metric(9500, 10_000)}, tests=tests)
    text = markdown(find_table("deformation"), "cpu", lines_of(find_table("deformation"), "cpu", tmp_path))
    assert [cell.split()[0] for cell in cells(text, "bcn")[1:11]] == [
        *("97.2", "95.00", "94.8", "90.00", "92.7", "80.00", "76.1", "70.00", "91.6", "60.00")
    ]


def test_a_run_counts_in_every_table_that_has_its_row(tmp_path: Path) -> None:
    write_record(tmp_path, "table3/multirn-h", 0, questions(9000, 9900))
    for table, row in (("table5-sort-of-clevr", "xy-centred-radial"), ("bcn-size", "128-128-256")):
        text = markdown(find_table(table), "cpu", lines_of(find_table(table), "cpu", tmp_path))
        assert cells(text, row)[2].startswith("90.00 [")


def test_csv_and_markdown_are_written_beside_the_records(tmp_path: Path) -> None:
    kinds = {kind: make_metric(50, 100) for kind in ("shape", "left", "above", "closest", "furthest", "count")}
    write_record(tmp_path, "table3/mlp", 0, {**questions(7000, 6500), **kinds})
    write_record(tmp_path, "table3/mlp", 2, {**questions(7200, 6500), **kinds}, ranks=2)
    text, (page, table) = write_table(find_table("table3"), "cpu", tmp_path)
    assert text in page.read_text()
    assert text.count("| mlp |") == 2, "the figures, and the figures by kind of question"
    rows = {row["row"]: row for row in csv.DictReader(StringIO(table.read_text()))}
    assert float(rows["mlp"]["relational_paper"]) == 74.2
    assert float(rows["mlp"]["relational_mean"]) == pytest.approx(71.0)
    assert float(rows["mlp"]["relational_spread"]) == pytest.approx(stdev((70, 72)), abs=1e-5)
    assert rows["mlp"]["seeds"] == "0 2"
    assert (rows["mlp"]["parameters"], rows["mlp"]["cpu_minutes"]) == ("241522", "35.0"), (
        "of 10, and of 30 on two ranks"
    )
    assert rows["rn"]["relational_mean"] == rows["rn"]["seeds"] == ""
    assert rows["rn-published"]["parameters"] == ""


def test_a_damaged_record_is_one_sentence(tmp_path: Path) -> None:
    path = write_record(tmp_path, "table3/mlp", 0, questions(7000, 6500))
    whole = json.loads(path.read_text())
    changes = [
        {"metrics": {}},
        {"metrics": {"test": []}},
        {"metrics": {"test": {"all": 5}}},
        {"metrics": {"test": {"all": {"accuracy": 0.5, "total": 10}}}},
        {"metrics": {"test": {"localisation": "small"}}},
        {"cpu_seconds": None},
        {"curve": 3},
        {"curve": [{"loss": 1}]},
    ]
    spoiled = [json.dumps(whole | change) for change in changes]
    for content in (path.read_text()[:100], json.dumps(whole).replace('"metrics"', '"figures"'), *spoiled):
        path.write_text(content)
        with pytest.raises(BcnError, match=r"is not the record of a run|cannot read .*; remove it and train"):
            lines_of(find_table("table3"), "cpu", tmp_path)
