"""The pages that `bcn report` writes, and the commands that list recipes and render tables."""

from pathlib import Path

import pytest
from helpers.command import run_bcn
from helpers.records import cells, questions, write_record

from bcn.errors import BcnError
from bcn.paper.measurements import write_measurements
from bcn.paper.page import write_page
from bcn.paper.tables import TABLES


def test_the_page_holds_every_table_and_links_what_is_written_by_hand(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    write_record(tmp_path / "results", "table3/multirn-h", 0, questions(9700, 9990))
    written = write_page(tmp_path / "results.md", tmp_path / "results")
    text = (tmp_path / "results.md").read_text()
    for table in TABLES.values():
        own_page = table.name in ("broadcast", "leaderboard", "wild")
        assert (f"## {table.title}\n" in text) == (not own_page), (
            "the study and the leaderboard have pages of their own"
        )
    assert "97.00" in text
    assert "](where-we-differ.md)" in text
    assert "figures/curves-table3-cpu.png" in text
    assert (tmp_path / "figures" / "curves-table3-cpu.png") in written
    by_section = cells(text[text.index("## Appendix table 2") :], "multirn-h")[1:]
    counted = [float(cell.split(" / ")[1]) for cell in by_section]
    assert counted == pytest.approx([3.99, 12.86, 6.6, 0.134, 23.59], rel=2e-3)


def test_a_page_is_not_written_over_without_records(tmp_path: Path) -> None:
    page = tmp_path / "results.md"
    page.write_text("figures")
    for results in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(BcnError, match=f"{results} has no records"):
            run_bcn("report", "--out", page, "--results", results)
    assert page.read_text() == "figures"
    assert list(tmp_path.iterdir()) == [page]


@pytest.mark.parametrize("content", ["{", "{}", '{"commit": null, "time": "2026", "measurements": {}}'])
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
    printed = run_bcn("table", "table1", "--no-train", "--results", tmp_path).splitlines()
    (row,) = (line.split() for line in printed if line.startswith("bcn-average-pool"))
    assert row[1:4] == ["92.7", "/", "-"]
    assert "| bcn-average-pool | 92.7 | - |" in (tmp_path / "table1" / "cpu.md").read_text()
    with pytest.raises(BcnError, match="did you mean 'table3'"):
        run_bcn("table", "tabel3", "--no-train")
