"""The figures that the README and the docs show are those of the records under results/."""

import json
import re
import shutil
import tomllib
from pathlib import Path
from statistics import mean

import pytest

from bcn.paper.page import write_page

ROOT = Path(__file__).parents[2]
PAPER = tomllib.loads((ROOT / "bcn" / "paper" / "tables.toml").read_text())
FAMILIES = ("all", "count", "exist", "compare_numbers", "query_attribute", "compare_attribute")


def test_the_page_of_results_is_what_the_records_say(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    shutil.copytree(ROOT / "docs" / "results" / "figures", tmp_path / "figures")
    write_page(tmp_path / "results.md", ROOT / "results")
    assert (tmp_path / "results.md").read_text() == (ROOT / "docs/results/tables.md").read_text(), "run `bcn report`"


def records(row: str) -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted((ROOT / "results" / row).glob("cpu-seed*.json"))]


def accuracy(row: str, part: str = "all") -> float:
    """In percent, the mean over seeds."""
    return 100 * mean(record["metrics"]["test"][part]["accuracy"] for record in records(row))


def table(page: str, head: str) -> dict[str, list[str]]:
    """The rows of the table whose first heading begins so, by their names."""
    lines = (ROOT / page).read_text().split("\n")
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {head}"))
    body = lines[start + 2 : lines.index("", start)]
    cells = [[cell.strip().strip("*") for cell in line.strip("|").split("|")] for line in body]
    return {name: others for name, *others in cells}


def test_table_3_of_the_readme() -> None:
    shown = table("README.md", "Sort-of-CLEVR (table 3)")
    printed = {row["name"]: row for row in PAPER["sort_of_clevr"]["rows"]}
    ours = {
        "multirn-h, on the data of the time": "table3-legacy/multirn-h",
        "multirn-h, on scenes that never repeat": "beyond/multirn-h-stream",
    }
    assert set(shown) == {*printed, *ours} - {"rn-published"}
    for name, (*figures, _) in shown.items():
        of = ours.get(name, f"table3/{name}")
        expected = []
        for part in ("relational", "non_relational"):
            paper = "-" if of.startswith("beyond") else f"{printed[of.split('/')[1]][part]:.1f}"
            expected += [paper, f"{accuracy(of, part):.2f}" if records(of) else "-"]
        assert figures == expected, name


def test_table_1_of_the_readme() -> None:
    shown = table("README.md", "Scaled-MNIST (table 1)")
    assert len(shown) == 6
    for row in PAPER["scaled_mnist"]["rows"]:
        mine = [figures for name, figures in shown.items() if name.startswith(f"{row['name']}, ")]
        assert len(mine) in (0, 2)
        if mine:
            error = mean(record["metrics"]["test"]["localisation"] for record in records(f"table1/{row['name']}"))
            assert mine[0][:2] == [f"{row['accuracy']} %", f"{row['localisation']}"]
            assert mine[1][:2] == [f"{accuracy('table1/' + row['name']):.2f} %", f"{error:.4f}"]


def test_table_4_of_the_readme() -> None:
    for name, figures in table("README.md", "CLEVR-like scenes (table 4)").items():
        row = f"table4/{name.removesuffix(', blind')}"
        assert figures == [f"{accuracy(row, family):.1f}" for family in FAMILIES], name


def test_table_4_of_the_guide() -> None:
    page = (ROOT / "docs" / "guides" / "clevr.md").read_text()
    rows = re.findall(r"^\| (\w\S+) \|((?: [\d.]+ \[[\d.]+, [\d.]+\] \|){5})$", page, flags=re.MULTILINE)
    assert len(rows) >= 3
    for name, figures in rows:
        (record,) = records(f"table4/{name}")
        of = [record["metrics"]["test"][family] for family in FAMILIES[1:]]
        shown = [
            f"{100 * one['accuracy']:.1f} [{', '.join(f'{100 * end:.1f}' for end in one['interval'])}]" for one in of
        ]
        assert figures == "".join(f" {cell} |" for cell in shown), name
