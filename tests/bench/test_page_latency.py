"""`bcn bench page-latency` drags in a real browser; its record has what the page said. Times are never asserted."""

import json
from pathlib import Path

import pytest
from helpers.command import run_bcn
from helpers.small_weights import scene_run

pytest.importorskip("fastapi", reason="needs the extra web")

from helpers.pages import needs_chromium

from bcn.bench.page_latency import FIRST, MOVES, bench_page_latency
from bcn.errors import BcnError


@needs_chromium
def test_the_record(tmp_path: Path) -> None:
    out = tmp_path / "page-latency.json"
    run_bcn("bench", "page-latency", "--weights", scene_run(), "--rounds", 2, "--out", out)
    record = json.loads(out.read_text())
    assert record["benchmark"] == "page-latency"
    assert 2 <= record["measurements"]["answers"] <= 2 * (1 + MOVES - FIRST)
    spread = record["measurements"]["milliseconds from a move to its answers"]
    assert 0 < spread["low"] <= spread["median"] <= spread["high"]


def test_weights_that_cannot_be_served_are_refused_in_a_sentence() -> None:
    with pytest.raises(BcnError, match="did you mean 'sort-of-clevr/multirn-h'"):
        bench_page_latency("sort-of-clevr/multirnh", rounds=1, say=lambda _: None)
