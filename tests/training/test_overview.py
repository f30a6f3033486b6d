"""`bcn runs`: what is said of runs that are finished, stopped, training or damaged."""

import json
import os
import shutil
from pathlib import Path

import pytest
from helpers.command import run_bcn

import bcn
from bcn.errors import BcnError


def test_runs_are_listed_with_state_progress_and_accuracy(tmp_path: Path) -> None:
    run = bcn.train("table3/mlp", scale="smoke", runs=tmp_path, threads=1)
    record = run.record()
    assert record is not None
    for name in ("stopped", "training", "damaged", "begun"):
        copy = Path(shutil.copytree(run.path, tmp_path / name))
        (copy / "record.json").unlink()
    first = (run.path / "metrics.jsonl").read_text().splitlines(keepends=True)[0]
    for name in ("stopped", "training"):
        (tmp_path / name / "metrics.jsonl").write_text(first)
    os.utime(tmp_path / "stopped" / "metrics.jsonl", (1, 1))
    (tmp_path / "begun" / "metrics.jsonl").unlink()
    (tmp_path / "damaged" / "manifest.json").write_text("{}")
    found = {each["name"]: each for each in json.loads(run_bcn("runs", "--runs", tmp_path, "--json"))}
    accuracy = f"{100 * record['metrics']['test']['all']['accuracy']:.1f} % test"
    assert (found[run.path.name]["state"], found[run.path.name]["metric"]) == ("finished", accuracy)
    assert [found[name]["state"] for name in ("stopped", "training", "damaged", "begun")] == [
        "stopped",
        "training",
        "damaged",
        "stopped",
    ]
    event = json.loads(first)
    assert found["training"]["epochs"] == "1/2"
    assert found["training"]["metric"] == f"{100 * event['accuracy']:.1f} % val"
    assert found["training"]["seconds_left"] == pytest.approx(60 * event["minutes"])
    assert found["begun"]["epochs"] == "0/2"
    printed = run_bcn("runs", "--runs", tmp_path).splitlines()
    assert len(printed) >= 6
    assert max(map(len, printed)) <= 80
    with pytest.raises(BcnError, match="is not a directory"):
        run_bcn("runs", "--runs", tmp_path / "nowhere")
