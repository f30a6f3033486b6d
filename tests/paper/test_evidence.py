"""The figures that the README and the docs show are those of the records under results/."""

import json
import re
import shutil
import tomllib
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from bcn.io import read_record, with_checksum
from bcn.paper.page import write_page
from bcn.paper.recipes.blocks import ABOUT
from bcn.paper.rows import lines_of
from bcn.paper.tables import TABLES, list_recipes

ROOT = Path(__file__).parents[2]
PAPER = tomllib.loads((ROOT / "bcn" / "paper" / "tables.toml").read_text())


def test_the_page_of_results_is_what_the_records_say(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    shutil.copytree(ROOT / "docs" / "results" / "figures", tmp_path / "figures")
    write_page(tmp_path / "results.md", ROOT / "results")
    assert (tmp_path / "results.md").read_text() == (ROOT / "docs/results/tables.md").read_text(), "run `bcn report`"


@pytest.mark.parametrize("path", sorted((ROOT / "results").rglob("*.json")), ids=lambda path: str(path.name))
def test_records_carry_their_checksum(path: Path) -> None:
    if path.name.endswith("-estimate.json"):
        pytest.skip("an estimate is no record")
    record = read_record(path, "")
    assert json.loads(path.read_text()) == with_checksum(record), "write it with bcn.io.write_record"


def records(row: str) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted((ROOT / "results" / row).glob("cpu-seed*.json"))]


def percent(record: dict[str, Any], part: str) -> float:
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
    elif "relational" in metric or table.startswith(("table3", "stream")):
        name, value = "relational", f"{accuracy(recipe, 'relational'):.2f}"
    else:
        name, value = ("overall" if table == "table4" else "accuracy"), f"{accuracy(recipe):.2f}"
    if TABLES[table].published is None:
        assert paper == "-"
    else:
        (printed,) = (each for each in PAPER[PUBLISHED[table.removesuffix("-legacy")]] if each["name"] == row)
        assert float(paper) == printed[name]
    assert (ours, seeds) == (value, str(len(records(recipe))))


def test_the_readme_says_how_many_rows_have_been_run() -> None:
    paper = [table for table in TABLES.values() if table.published is not None and table.name != "table3-legacy"]
    lines = [
        line
        for table in paper
        for line in lines_of(table, "cpu", ROOT / "results")
        if f"{table.name}/{line.name}" in list_recipes(table.name)
    ]
    run = sum(bool(line.results) for line in lines)
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert f"{run} of the {len(lines)} trainable rows" in readme


def test_both_seeds_at_batch_size_32() -> None:
    """The results page shows both seeds, the README their mean."""
    page, means = (ROOT / "docs" / "results" / "where-we-differ.md").read_text(), []
    for row in ("multirn", "multirn-no-bcn"):
        trial = json.loads((ROOT / "results" / "trials" / f"table3-{row}-paper-batch32-seed0.json").read_text())
        (record,) = records(f"batch32/{row}")
        assert record["seed"] == 1
        for seed, each in enumerate((trial, record)):
            cells = [f"{percent(each, part):.2f}" for part in ("relational", "non_relational")]
            epoch = next(point["epoch"] for point in each["curve"] if point["non_relational"] >= 0.95)
            pattern = rf"^\| {row}, seed {seed} \| {cells[0]} \| {cells[1]} \| [-\d]+ \| epoch {epoch} \|$"
            assert re.search(pattern, page, re.MULTILINE), pattern
        means.append(mean(percent(each, "relational") for each in (trial, record)))
        assert f"| {row}, mean | {means[-1]:.1f} |" in page
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert "{:.1f} % against {:.1f} %, the mean of two seeds".format(*means) in readme


def test_what_the_bcns_of_table_3_are_worth_in_words() -> None:
    page, readme = (
        " ".join((ROOT / name).read_text().split()) for name in ("docs/results/where-we-differ.md", "README.md")
    )
    probes = [record["broadcast"]["test"] for record in records("table3/multirn-h")]
    lost = [100 * (probe["as_trained"]["relational"] - probe["mean_vector"]["relational"]) for probe in probes]
    active = [probe["active_channels"] for probe in probes]
    assert f"{min(active)} to {max(active)} of 256 channels of `multirn-h` are active in three seeds" in readme
    assert f"{mean(lost):.0f} points of its accuracy are lost" in readme
    assert "({:.0f}, {:.0f} and {:.0f} in the three seeds)".format(*sorted(lost)) in page
    assert f"{accuracy('table3/multirn-h', 'relational'):.2f} ± 0.30 % relational for `multirn-h`" in page
    rows = [
        f"{percent(each, 'relational'):.2f}"
        for row in ("multirn", "multirn-no-bcn")
        for each in records(f"table3/{row}")
    ]
    assert "`multirn` have {}, {} and {} %, of `multirn-no-bcn` {}, {} and {}".format(*rows) in page
    (with_bcn,), (without,) = records("broadcast/linear-images"), records("broadcast/none-images")
    in_validation = [100 * each["broadcast"]["val"]["as_trained"]["relational"] for each in (with_bcn,)]
    in_validation += [max(100 * point["relational"] for point in without["curve"])]
    (dead,) = records("broadcast/relu-images")
    in_validation.append(100 * dead["broadcast"]["val"]["as_trained"]["relational"])
    said = "{:.1f} % against {:.1f} in validation, but {:.1f} % come from one whose channels died".format(
        *in_validation
    )
    assert said in readme
    assert f"all but {dead['broadcast']['val']['active_channels']} channels died" in page
    (fresh,) = records("stream/multirn-h-stream")
    assert f"{percent(fresh, 'relational'):.2f} % [" in page
    assert f"{100 * fresh['broadcast']['test']['mean_vector']['relational']:.2f} % are right when every image" in page
    fewer = [
        f"{100 * fresh['metrics'][f'sort-of-clevr-v1-{n}-objects']['relational']['accuracy']:.1f}" for n in (5, 4, 3, 2)
    ]
    five, four, three, two = fewer
    assert f"with five it has {five} % relational, with four {four}, with three {three} and with two {two}" in page


def test_what_a_bcn_is_worth_in_a_u_net_in_words() -> None:
    guide = " ".join((ROOT / "docs" / "guides" / "network.md").read_text().split())
    (without,), (with_bcn,) = records("masks/unet"), records("masks/unet-bcn")
    ious = [100 * each["metrics"]["test"]["mean_iou"] for each in (without, with_bcn)]
    assert "a mean IoU of {:.1f} % on 10,000 test images, and with a BCN {:.1f} %".format(*ious) in guide
    assert "from {:.1f} to {:.1f} % (one seed each".format(*ious) in " ".join((ROOT / "README.md").read_text().split())
    muted = with_bcn["broadcast"]["test"]["mean_vector"]["mean_iou"]
    assert f"in the place of each it falls to {100 * muted:.1f} %" in guide


def test_what_a_bcn_is_worth_in_a_detector_in_words() -> None:
    guide = " ".join((ROOT / "docs" / "guides" / "network.md").read_text().split())
    (without,), (with_bcn,) = records("boxes/centre-net"), records("boxes/centre-net-bcn")
    precisions = [100 * each["metrics"]["test"]["average_precision"] for each in (without, with_bcn)]
    assert "on 1,000 test images is {:.1f} %, and with a BCN {:.1f} %".format(*precisions) in guide
    muted = with_bcn["broadcast"]["test"]["mean_vector"]["average_precision"]
    assert f"the place of each it stays at {100 * muted:.1f} %" in guide


def test_how_other_blocks_compare_in_words() -> None:
    guide = " ".join((ROOT / "docs" / "guides" / "network.md").read_text().split())

    def on(test_set: str, *rows: str) -> list[str]:
        """In percent, the mean over seeds."""
        each = [[record["metrics"][test_set]["all"]["accuracy"] for record in records(f"blocks/{row}")] for row in rows]
        return [f"{100 * mean(accuracies):.1f}" for accuracies in each]

    said = "from {} to {} %; CoordConv has {} and coordinate attention {}."
    assert said.format(*on("test", "none", "bcn", "coord-conv", "coordinate-attention")) in guide
    rows = "bcn", "coordinate-attention", "none"
    said = "the BCN has {} %, the next best block, coordinate attention, {}, and no block at all {};"
    assert said.format(*on("more-scaled-mnist-v1", *rows)) in guide
    assert "up to 45 degrees {}, {} and {}.".format(*on("more-scaled-mnist-45-v1", *rows)) in guide
    others = {name: float(*on("more-scaled-mnist-v1", name)) for name in ABOUT if name not in rows}
    assert max(others.values()) < float(*on("more-scaled-mnist-v1", "coordinate-attention"))
    said = "{} % against {} without and {} with CoordConv."
    assert said.format(*on("test", "stl10-bcn", "stl10-none", "stl10-coord-conv")) in guide
    errors = [
        mean(record["metrics"]["test"]["localisation"] for record in records(f"blocks/{row}"))
        for row in ("bcn", "coord-conv", "self-attention", "none")
    ]
    said = "an error of {:.3f}, CoordConv and self-attention with {:.3f} and {:.3f}, the others with about {:.3f}."
    assert said.format(*errors) in guide


def test_table_4_and_the_transfer_in_words() -> None:
    page = " ".join((ROOT / "docs" / "results" / "where-we-differ.md").read_text().split())
    for name, record in (("multirn-h", records("table4/multirn-h")[0]), ("multirn", records("table4/multirn")[0])):
        assert with_interval(record["metrics"]["test"]["all"]) in page, name
        transfer = json.loads((ROOT / "results" / "transfer" / f"{name}.json").read_text())
        assert f"{name} has {with_interval(transfer['metrics']['all'])}" in page.replace(
            "and multirn 70", "multirn has 70"
        )


def test_transfer_in_both_wordings() -> None:
    page = " ".join((ROOT / "docs" / "results" / "where-we-differ.md").read_text().split())
    readme = " ".join((ROOT / "README.md").read_text().split())
    accuracy = []
    for name in ("multirn-h-train", "multirn-h-v2", "multirn-h-v2-train"):
        record = json.loads((ROOT / "results" / "transfer" / f"{name}.json").read_text())
        counts = record["metrics"]["all"]
        version = record["data"].replace("transfer", "like")
        about = f"{counts['total']:,} of `{version}` | {record['images']} of {record['split']}"
        row = f"| {about} | {with_interval(counts)} |"
        assert row in page, row
        accuracy.append(f"{100 * counts['accuracy']:.1f} %")
    assert f"{accuracy[0]} of our own questions and {accuracy[2]} of questions" in readme


def test_broadcast_after_asking_on_clevr_in_words() -> None:
    (record,) = records("clevr-like-v2/multirn-rounds")
    page = " ".join((ROOT / "docs" / "results" / "where-we-differ.md").read_text().split())
    metrics = record["metrics"]["test"]
    minutes = round(record["ranks"] * record["cpu_seconds"] / 60)
    said = (
        f"it has {with_interval(metrics['all'])} of 20,000 questions about 2,000 images right after {minutes} minutes"
    )
    assert said in page
    families = ("count", "exist", "compare_numbers", "query_attribute", "compare_attribute")
    each = [f"{percent(record, family):.1f}" for family in families]
    said = "counts {} %, existence {}, numbers compared {}, attributes {}, attributes compared {}."
    assert said.format(*each) in page
    for name in ("multirn-rounds-v2", "multirn-rounds-v2-train"):
        transfer = json.loads((ROOT / "results" / "transfer" / f"{name}.json").read_text())
        counts = transfer["metrics"]["all"]
        about = f"{counts['total']:,} of `clevr-like-v2` | {transfer['images']} of {transfer['split']}"
        assert f"| {about} | {with_interval(counts)} |" in page
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert f"answers {100 * counts['accuracy']:.1f} % of the latter" in readme


def with_interval(counts: dict[str, Any]) -> str:
    low, high = (f"{100 * end:.1f}" for end in counts["interval"])
    return f"{100 * counts['accuracy']:.1f} % [{low}, {high}]"
