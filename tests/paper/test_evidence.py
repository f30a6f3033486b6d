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


def percent(record: dict, part: str) -> float:
    accuracy: float = record["metrics"]["test"][part]["accuracy"]
    return 100 * accuracy


def accuracy(row: str, part: str = "all") -> float:
    """In percent, the mean over seeds."""
    return mean(percent(record, part) for record in records(row))


def readme_rows() -> list[tuple[str, ...]]:
    """The cells of the table of results: recipe, metric, paper, ours, seeds; no metric is the one above."""
    lines = (ROOT / "README.md").read_text().split("\n")
    start = lines.index("| recipe | metric | paper | ours | seeds |") + 2
    rows: list[tuple[str, ...]] = []
    for line in lines[start : lines.index("", start)]:
        recipe, metric, *numbers = (cell.strip().strip("`") for cell in line.strip("|").split("|"))
        rows.append((recipe, metric or rows[-1][1], *numbers))
    return rows


PUBLISHED = {"table1": "scaled_mnist", "table2": "stl10", "table3": "sort_of_clevr", "table4": "clevr"}


@pytest.mark.parametrize(("recipe", "metric", "paper", "ours", "seeds"), readme_rows())
def test_the_readme_shows_what_the_paper_and_the_records_say(
    recipe: str, metric: str, paper: str, ours: str, seeds: str
) -> None:
    table, row = recipe.split("/")
    if "localisation" in metric:
        name, value = "localisation", f"{mean(each['metrics']['test']['localisation'] for each in records(recipe)):.4f}"
    elif "relational" in metric or table.startswith("table3"):
        name, value = "relational", f"{accuracy(recipe, 'relational'):.2f}"
    else:
        name, value = ("overall" if table == "table4" else "accuracy"), f"{accuracy(recipe):.2f}"
    (printed,) = (each for each in PAPER[PUBLISHED[table.removesuffix("-legacy")]]["rows"] if each["name"] == row)
    assert float(paper) == printed[name]
    assert (ours, seeds) == (value, str(len(records(recipe))))


def test_the_readme_gives_the_mean_of_both_seeds_at_batch_size_32() -> None:
    shares = []
    for row in ("multirn", "multirn-no-bcn"):
        trial = json.loads((ROOT / "results" / "trials" / f"table3-{row}-paper-batch32-seed0.json").read_text())
        shares.append(mean([accuracy(f"share/{row}", "relational"), percent(trial, "relational")]))
    text = " ".join((ROOT / "README.md").read_text().split())
    assert "{:.1f} % against {:.1f} %, the mean of two seeds".format(*shares) in text


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
