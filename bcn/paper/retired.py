"""Records that other runs have replaced, under results/retired.toml: a figure that was published once stays listed."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from bcn.paper.render import grid

FILE = "retired.toml"
NAMES = {"all": "accuracy"}


@dataclass(frozen=True)
class Retired:
    recipe: str
    metric: str
    values: tuple[float, ...]
    """on the test split, in percent, one for each record"""
    records: tuple[str, ...]
    """where each is in the history: COMMIT:PATH"""
    about: str
    """what set the recipe apart"""
    reason: str
    """why it was replaced"""


def read_retired(results: Path) -> list[Retired]:
    path = results / FILE
    entries: list[dict[str, Any]] = []
    if path.exists():
        entries = tomllib.loads(path.read_text(encoding="utf-8"))["retired"]
    return [
        Retired(**entry | {"values": tuple(entry["values"]), "records": tuple(entry["records"])}) for entry in entries
    ]


def retired_markdown(results: Path) -> str:
    """The section of the page of results; empty where nothing was replaced."""
    rows = []
    for entry in read_retired(results):
        spread = f" ± {stdev(entry.values):.2f}" if len(entry.values) > 1 else ""
        metric = NAMES.get(entry.metric, entry.metric).replace("_", "-")
        figure, commit = f"{mean(entry.values):.2f}{spread}", entry.records[-1].partition(":")[0]
        rows.append([f"`{entry.recipe}`", entry.about, metric, figure, str(len(entry.values)), entry.reason, commit])
    if not rows:
        return ""
    table = grid(["recipe", "what it had", "metric", "ours, %", "n", "why it was replaced", "record in"], rows)
    return (
        "## Replaced records\n\nNumbers that were published here once, on the test split, and why others stand in "
        f"their place. The last column is a commit that has the record, `results/{FILE}` where it lies there.\n\n"
        f"{table}\n"
    )
