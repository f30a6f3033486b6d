"""`bcn bench page-latency` drags in a real browser; its record has what the page said. Times are never asserted."""

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.command import run_bcn
from helpers.small_weights import scene_run

pytest.importorskip("fastapi", reason="needs the extra web")

from helpers.pages import needs_chromium

from bcn.bench import page_latency
from bcn.bench.page_latency import FIRST, bench_page_latency
from bcn.errors import BcnError


@needs_chromium
def test_the_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, what is measured are answers to requests that the page has made."""
    rounds, drag = list[tuple[int, int]](), page_latency._drag

    def counted(page: Any, address: str) -> list[float]:
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        times = drag(page, address)
        rounds.append((len(times), sum(url.endswith("/api/reason") for url in asked)))
        return times

    monkeypatch.setattr(page_latency, "_drag", counted)
    out = tmp_path / "page-latency.json"
    run_bcn("bench", "page-latency", "--weights", scene_run(), "--rounds", 2, "--out", out)
    record = json.loads(out.read_text())
    assert record["benchmark"] == "page-latency"
    assert len(rounds) == 2
    for answers, requests in rounds:
        running_and_waiting = 2
        assert FIRST < answers <= requests <= answers + running_and_waiting
    assert record["measurements"]["answers"] == sum(answers - FIRST for answers, _ in rounds)
    spread = record["measurements"]["milliseconds from a move to its answers"]
    assert 0 < spread["low"] <= spread["median"] <= spread["high"]


def test_weights_that_cannot_be_served_are_refused_in_a_sentence() -> None:
    with pytest.raises(BcnError, match="did you mean 'sort-of-clevr/multirn-h'"):
        bench_page_latency("sort-of-clevr/multirnh", rounds=1, say=lambda _: None)
