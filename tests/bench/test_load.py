"""`bcn bench serve` asks a real server; its record has what the clients met. Times are never asserted."""

import json
import sys
from pathlib import Path

import pytest
from helpers.command import run_bcn
from helpers.small_weights import scene_run

pytest.importorskip("fastapi", reason="needs the extra web")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the memory of a process from /proc")
def test_the_record(tmp_path: Path) -> None:
    out = tmp_path / "serve.json"
    options = ("--clients", 16, "--seconds", 2, "--uploads", 12)
    run_bcn("bench", "serve", "--weights", scene_run(), *options, "--out", out)
    record = json.loads(out.read_text())
    measured = record["measurements"]
    assert record["benchmark"] == "serve"
    assert measured["errors"] == 0
    assert measured["requests"] >= 16
    assert 0 < measured["milliseconds of a question"]["median"] <= measured["milliseconds of a question"]["p99"]
    uploads = measured["slow uploads"]
    assert (uploads["held"], uploads["refused"]) == (6, 6)  # 48 MB are held
    assert uploads["megabytes"] < 100
