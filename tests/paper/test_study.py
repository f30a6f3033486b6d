"""The page on what a BCN is worth, from made-up records."""

import json
from pathlib import Path

import pytest
from helpers.records import questions, write_record

from bcn.paper.study import write_study
from bcn.paper.tables import list_recipes

ROOT = Path(__file__).parents[2]


def write_run(results: Path, row: str, seed: int, curve: list[tuple[float, float]], mean_vector: float | None) -> None:
    """A record with (relational, non-relational) after each epoch of 1,225 steps, the last one kept."""
    path = write_record(results, f"broadcast/{row}", seed, questions(1, 1))
    record = json.loads(path.read_text())
    entries = enumerate(curve, start=1)
    record["curve"] = [
        {"epoch": epoch, "step": 1225 * epoch, "loss": 1.0, "relational": relational, "non_relational": non_relational}
        for epoch, (relational, non_relational) in entries
    ]
    record["best_epoch"] = len(curve)
    if mean_vector is not None:
        probe = {"active_channels": 250 + seed, "vector_share": 0.125, "mean_vector": {"relational": mean_vector}}
        record["broadcast"] = {"val": probe}
    path.write_text(json.dumps(record))


def test_the_page_gives_means_over_seeds_and_the_steps_of_each(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    results, page = tmp_path / "results", tmp_path / "broadcast.md"
    assert write_study(page, results) == []
    write_run(results, "linear-images", 0, [(0.5, 0.6), (0.7, 0.96), (0.9, 0.99)], 0.6)
    write_run(results, "linear-images", 1, [(0.5, 0.96), (0.7, 0.94), (0.92, 0.99)], 0.7)
    write_run(results, "none-images", 0, [(0.5, 0.6), (0.7, 0.7), (0.75, 0.95)], None)
    assert [path.name for path in write_study(page, results)] == ["broadcast.md", "broadcast-study.png"]
    rows = {line.split("`")[1]: line.split(" | ") for line in page.read_text().splitlines() if line.startswith("| `")}
    assert list(rows) == [name.removeprefix("broadcast/") for name in list_recipes("broadcast")]
    assert rows["linear-images"][1:] == [
        "2",
        "2,450, 1,225",
        "91.00 ± 1.41",
        "99.00 ± 0.00",
        "250, 251",
        "0.12 ± 0.00",
        "65.00 ± 7.07 |",
    ]
    assert rows["none-images"][1:] == ["1", "never", "75.00", "95.00", "-", "-", "- |"]
    assert rows["relu-pairs"][1:] == ["0", *["-"] * 5, "- |"]


def test_the_page_is_what_the_records_say(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    page = ROOT / "docs" / "results" / "broadcast.md"
    written = write_study(tmp_path / "broadcast.md", ROOT / "results")
    assert bool(written) == page.exists()
    assert not written or written[0].read_text() == page.read_text(), "run `bcn report`"
