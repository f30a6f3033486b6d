"""Tables from records: figures, intervals, dashes, what is left out, and the commands that make them."""

import csv
import json
import signal
import time
from dataclasses import replace
from io import StringIO
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest
from helpers.command import finish, invoke_bcn, run_bcn, start_bcn
from helpers.records import share, write_record

from bcn.errors import BcnError
from bcn.models.cost import paper_cost
from bcn.paper.estimate import Estimate, estimate_path, keep_estimate, measure
from bcn.paper.measurements import write_measurements
from bcn.paper.page import write_page
from bcn.paper.plan import Planned, missing
from bcn.paper.records import read_result, results_of
from bcn.paper.render import markdown, write_table
from bcn.paper.rows import lines_of
from bcn.paper.tables import TABLES, find_recipe, find_table
from bcn.training.loop import Trainer, train
from bcn.training.recipe import Auxiliary, Recipe, Scale


def questions(relational: int, non_relational: int) -> dict[str, Any]:
    return {"relational": share(relational, 10_000), "non_relational": share(non_relational, 10_000)}


def cells(text: str, row: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {row} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


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

    path = write_record(tmp_path, "table4/multirn", 0, {"all": share(1, 2)}, change=taught)
    assert ["accuracy" in entry for entry in read_result(path).curve] == [False, False, True]
    assert [entry["loss"] for entry in read_result(path).curve] == [1, 1 / 2, 1 / 3]


def test_what_was_not_run_is_a_dash_and_never_a_figure(tmp_path: Path) -> None:
    write_record(tmp_path, "table3/multirn-h", 0, questions(9000, 9000))
    text = markdown(find_table("table3"), "cpu", lines_of(find_table("table3"), "cpu", tmp_path))
    for row in ("rn-published", "rn", "mlp"):
        assert cells(text, row)[2] == cells(text, row)[4] == "-"
        assert cells(text, row)[5] == "0"
    assert "±" not in cells(text, "multirn-h")[2]


def test_overridden_runs_and_runs_of_a_changed_recipe_are_left_out_and_named(tmp_path: Path) -> None:
    write_record(tmp_path, "table3/multirn-h", 0, questions(9000, 9000), overridden=True)
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
        assert bool(line.departures) == bool(line.recipe)
        for departure in line.departures.values():
            assert departure.lower() in text


def test_localisation_and_the_columns_of_other_test_sets(tmp_path: Path) -> None:
    figures = {"all": share(9750, 10_000), "localisation": 0.02345}
    write_record(tmp_path, "table1/bcn", 0, figures)
    write_record(tmp_path, "table1/bcn", 1, {**figures, "localisation": 0.02445})
    text = markdown(find_table("table1"), "cpu", lines_of(find_table("table1"), "cpu", tmp_path))
    assert cells(text, "bcn")[2].startswith("97.50 ± 0.00 [")
    assert cells(text, "bcn")[3:5] == ["0.023", "0.0239 ± 0.0007"]
    others = dict(zip(find_recipe("deformation/bcn", "cpu").data.tests, (9000, 8000, 7000, 6000), strict=True))
    tests = {name: {"all": share(correct, 10_000)} for name, correct in others.items()}
    write_record(tmp_path, "deformation/bcn", 0, {"all": share(9500, 10_000)}, tests=tests)
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
    kinds = {kind: share(50, 100) for kind in ("shape", "left", "above", "closest", "furthest", "count")}
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


def test_only_missing_runs_are_planned_seed_by_seed(tmp_path: Path) -> None:
    write_record(tmp_path, "table3/mlp", 0, questions(7000, 6500))
    planned = missing(find_table("table3"), "cpu", 2, ["mlp", "multirn"], tmp_path)
    assert [(run.recipe.name, run.seed) for run in planned] == [
        ("table3/multirn", 0),
        ("table3/mlp", 1),
        ("table3/multirn", 1),
    ]
    with pytest.raises(BcnError, match="did you mean 'multirn'"):
        missing(find_table("table3"), "cpu", 2, ["multrin"], tmp_path)


def test_a_step_is_measured_and_the_steps_of_the_run_are_known() -> None:
    estimate = measure(find_recipe("table3/mlp", "smoke"), alone=False)
    assert estimate.step_seconds > 0
    assert (estimate.steps, estimate.threads) == (4, 1)
    assert estimate.seconds == 4 * estimate.step_seconds


def test_a_row_that_was_only_measured_says_how_long_it_would_take(tmp_path: Path) -> None:
    keep_estimate(tmp_path, find_recipe("table3/rn-h", "cpu"), Estimate(step_seconds=30.0, steps=1200, threads=2))
    changed = replace(find_recipe("table3/rn", "cpu"), epochs=99)
    keep_estimate(tmp_path, changed, Estimate(step_seconds=30.0, steps=1200, threads=2))
    text = markdown(find_table("table3"), "cpu", lines_of(find_table("table3"), "cpu", tmp_path))
    assert cells(text, "rn-h")[-1] == "(about 10.0 h)"
    assert cells(text, "rn")[-1] == "-", "measured for another recipe"
    path = estimate_path(tmp_path, find_recipe("table3/rn-h", "cpu"))
    for content in (path.read_text().replace("steps", "stairs"), "[]"):
        path.write_text(content)
        with pytest.raises(BcnError, match="is not an estimate"):
            lines_of(find_table("table3"), "cpu", tmp_path)


def test_the_page_holds_every_table_and_links_what_is_written_by_hand(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    write_record(tmp_path / "results", "table3/multirn-h", 0, questions(9700, 9990))
    written = write_page(tmp_path / "results.md", tmp_path / "results")
    text = (tmp_path / "results.md").read_text()
    for table in TABLES.values():
        assert f"## {table.title}\n" in text
    assert "97.00" in text
    assert "](where-we-differ.md)" in text
    assert "figures/curves-table3-cpu.png" in text
    assert (tmp_path / "figures" / "curves-table3-cpu.png") in written
    by_section = cells(text[text.index("## Appendix table 2") :], "multirn-h")[1:]
    counted = [float(cell.split(" / ")[1]) for cell in by_section]
    assert counted == pytest.approx([3.99, 12.86, 6.6, 0.134, 23.59], rel=2e-3)


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
        with pytest.raises(BcnError, match="is not the record of a run"):
            lines_of(find_table("table3"), "cpu", tmp_path)


def test_a_page_is_not_written_over_without_records(tmp_path: Path) -> None:
    page = tmp_path / "results.md"
    page.write_text("figures")
    for results in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(BcnError, match=f"{results} has no records"):
            run_bcn("report", "--out", page, "--results", results)
    assert page.read_text() == "figures"
    assert list(tmp_path.iterdir()) == [page]


@pytest.mark.parametrize("content", ["{", "{}", '{"commit": null, "time": "2026", "figures": {}}'])
def test_a_damaged_benchmark_is_one_sentence(tmp_path: Path, content: str) -> None:
    page = tmp_path / "measurements.md"
    page.write_text("figures")
    (tmp_path / "speed.json").write_text(content)
    with pytest.raises(BcnError, match="bcn bench speed"):
        write_measurements(page, tmp_path)
    assert page.read_text() == "figures"


def test_commands_list_and_render(tmp_path: Path) -> None:
    listed = run_bcn("recipes", "table3")
    assert "table3/multirn-h" in listed
    assert "table1/" not in listed
    assert "| bcn-average-pool | 92.7 | - |" in run_bcn("table", "table1", "--no-train", "--results", tmp_path)
    with pytest.raises(BcnError, match="did you mean 'table3'"):
        run_bcn("table", "tabel3", "--no-train")


def test_a_table_trains_what_is_missing_and_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two at once, of which one was trained and not yet tested."""
    begun = Planned(find_recipe("table3/mlp", "smoke"), 0)
    with monkeypatch.context() as broken:
        broken.setattr(Trainer, "test", lambda self: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            train(begun.recipe, seed=0, runs=tmp_path / "runs", threads=1)
    assert begun.steps_done(tmp_path / "runs") == 4
    places = ["--runs", tmp_path / "runs", "--results", tmp_path / "results"]
    command = ["table", "table3", "--rows", "mlp,cce-mlp", "--scale", "smoke", "--jobs", 2, *places]
    out, errors = finish(start_bcn(*command))
    assert "2 runs, about" in errors
    for row, sessions in {"mlp": 2, "cce-mlp": 1}.items():
        assert cells(out[: out.index("\n\n")], row)[5] == "1", errors
        record = json.loads((tmp_path / "results" / "table3" / row / "smoke-seed0.json").read_text())
        assert record["sessions"] == sessions
        assert (record["parameters"], record["macs"]) == paper_cost(f"sort-of-clevr/{row}"), "as in the table"
    assert "runs, about" not in invoke_bcn(*command).stderr, "the second time there is nothing to train"


def test_a_table_that_is_stopped_saves_its_runs(tmp_path: Path) -> None:
    command = ["table", "table3", "--rows", "mlp", "--runs", tmp_path / "runs", "--results", tmp_path / "results"]
    process = start_bcn(*command)
    run = Planned(find_recipe("table3/mlp", "cpu"), 0).directory(tmp_path / "runs")
    while process.poll() is None and not (run / "metrics.jsonl").exists():
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    _, errors = finish(process, 143)
    assert f"stopped by SIGTERM; go on with: bcn {' '.join(map(str, command))}" in errors
    assert list((run / "checkpoint").glob("step-*.safetensors"))
