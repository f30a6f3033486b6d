"""Records that were replaced stay listed with the figures that they had."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bcn.paper.retired import read_retired, retired_markdown

ROOT = Path(__file__).parents[2]
RECORDS = [
    (place, entry.metric, value)
    for entry in read_retired(ROOT / "results")
    for place, value in zip(entry.records, entry.values, strict=True)
]


def in_history(place: str) -> dict[str, Any]:
    shown = subprocess.run(["git", "show", place], cwd=ROOT, capture_output=True, text=True)
    if shown.returncode:
        pytest.skip(f"{place} is not in the history of this checkout")
    record: dict[str, Any] = json.loads(shown.stdout)
    return record


@pytest.mark.parametrize(("place", "metric", "value"), RECORDS)
def test_a_replaced_record_has_the_figure_that_is_listed(place: str, metric: str, value: float) -> None:
    counts = in_history(place)["metrics"]["test"][metric]
    assert 100 * counts["correct"] / counts["total"] == pytest.approx(value, abs=5e-4)


def test_the_page_lists_the_mean_of_several_seeds(tmp_path: Path) -> None:
    (tmp_path / "retired.toml").write_text(
        '[[retired]]\nrecipe = "table3/multirn"\nmetric = "non_relational"\nvalues = [90.0, 92.0]\n'
        'records = ["a:x", "b:y"]\nabout = "short"\nreason = "longer"\n'
    )
    row = "| `table3/multirn` | short | non-relational | 91.00 ± 1.41 | 2 | longer | b |"
    assert row in retired_markdown(tmp_path)


def test_no_list_is_no_section(tmp_path: Path) -> None:
    assert retired_markdown(tmp_path) == ""
