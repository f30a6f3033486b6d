"""The runs that a table needs: which are missing, how long they take, and training them."""

import json
import os
import signal
import subprocess
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.command import finish, invoke_bcn, start_bcn
from helpers.records import cells, questions, write_record

from bcn.errors import BcnError
from bcn.models.cost import paper_cost
from bcn.paper.estimate import Estimate, announce, estimate_path, keep_estimate, measure
from bcn.paper.plan import Planned, missing, train_all
from bcn.paper.render import markdown
from bcn.paper.rows import lines_of
from bcn.paper.tables import find_recipe, find_table
from bcn.training.interrupts import Interrupted
from bcn.training.loop import Trainer, train


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


def test_a_long_step_is_announced_before_it_is_measured() -> None:
    assert "measuring one step, which may take" in announce(find_recipe("table3/rn-original", "paper"))
    assert announce(find_recipe("table3/mlp", "cpu")) == "table3/mlp: measuring a few steps"


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
    page = (tmp_path / "results" / "table3" / "smoke.md").read_text().split("\n\n")[1]
    for row, sessions in {"mlp": 2, "cce-mlp": 1}.items():
        assert cells(page, row)[5] == "1", errors
        assert f"table3/{row}: measuring a few steps" in errors
        assert next(line for line in out.splitlines() if line.startswith(f"{row} ")).split()[-3] == "1"
        record = json.loads((tmp_path / "results" / "table3" / row / "smoke-seed0.json").read_text())
        assert record["sessions"] == sessions
        assert (record["parameters"], record["macs"]) == paper_cost(f"sort-of-clevr/{row}"), "as in the table"
    assert "runs, about" not in invoke_bcn(*command).stderr, "the second time there is nothing to train"


def test_a_directory_of_runs_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    planned = [Planned(find_recipe("table3/mlp", "smoke"), seed) for seed in (0, 1)]
    with pytest.raises(BcnError, match=r"^cannot write .*\.log: "):
        train_all(planned, runs=tmp_path / "file", results=tmp_path, jobs=2)


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


@pytest.mark.usefixtures("sighup_heeded")
def test_a_table_whose_terminal_is_closed_lets_its_runs_save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process = subprocess.Popen(["sleep", "60"])
    monkeypatch.setattr("bcn.paper.plan._start", lambda *run, **options: process)
    monkeypatch.setattr("bcn.paper.plan.POLL_SECONDS", 0.05)
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGHUP)).start()
    planned = [Planned(find_recipe("table3/mlp", "smoke"), 0)]
    with pytest.raises(Interrupted, match="SIGHUP"):
        train_all(planned, runs=tmp_path, results=tmp_path, jobs=1)
    assert process.returncode == -signal.SIGTERM
