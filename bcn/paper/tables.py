"""The paper's tables: what it reports, read from tables.toml, and which of its tables our runs answer."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bcn.errors import did_you_mean


@dataclass(frozen=True)
class Table:
    """One table that can be made again; its rows are the recipes whose names begin with the table's name."""

    name: str
    title: str
    published: str | None
    """its name in tables.toml; None for a table of our own"""
    metrics: tuple[str, ...]
    """its columns that a run measures"""


_QUESTIONS = ("relational", "non_relational")
_FAMILIES = ("overall", "count", "exist", "compare_numbers", "query_attribute", "compare_attribute")
_DIGITS = ("accuracy", "localisation")
_DEFORMED = ("scaled", "more_scaled", "rotated_10", "rotated_45", "affnist")
OBJECTS = {f"objects_{objects}": objects for objects in (5, 4, 3, 2)}
"""columns for scenes with fewer objects than in training, and how many"""
TABLES = {
    table.name: table
    for table in (
        Table("table1", "Table 1: Scaled-MNIST", "scaled_mnist", _DIGITS),
        Table("table2", "Table 2: STL-10", "stl10", ("accuracy",)),
        Table("table3", "Table 3: Sort-of-CLEVR (sort-of-clevr-v1)", "sort_of_clevr", _QUESTIONS),
        Table("table3-legacy", "Table 3: Sort-of-CLEVR (the data of the time)", "sort_of_clevr", _QUESTIONS),
        Table("table4", "Table 4: CLEVR from pixels (at cpu scale clevr-like-v1)", "clevr", _FAMILIES),
        Table("table5-scaled-mnist", "Table 5: coordinate embeddings, Scaled-MNIST", "coordinates", _DIGITS),
        Table("table5-sort-of-clevr", "Table 5: coordinate embeddings, Sort-of-CLEVR", "coordinates", _QUESTIONS),
        Table("deformation", "Appendix table 1: robustness against deformation", "deformation", _DEFORMED),
        Table("bcn-size", "Appendix table 3: size of the BCN", "bcn_size", _QUESTIONS),
        Table("ablation", "Ours: what the cpu scale of table 3 owes to its choices", None, _QUESTIONS),
        Table("share", "Ours: what a BCN adds to multiRN where it lives", None, _QUESTIONS),
        Table("beyond", "Ours: beyond the paper", None, (*_QUESTIONS, *OBJECTS)),
    )
}
"""in the paper's order"""


def find_table(name: str) -> Table:
    if name not in TABLES:
        raise did_you_mean("table", name, TABLES)
    return TABLES[name]


@cache
def _toml() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("tables.toml").read_text())


def size_name(sizes: list[int] | tuple[int, ...]) -> str:
    """The name of a row of appendix table 3.

    >>> size_name([128, 128, 256]), size_name([])
    ('128-128-256', 'none')
    """
    return "-".join(map(str, sizes)) or "none"


def published_rows(table: str) -> dict[str, dict[str, Any]]:
    """The rows of one table of tables.toml by name, in the paper's order."""
    return {row.get("name") or size_name(row["sizes"]): row for row in _toml()[table]["rows"]}


def published(table: str, row: str) -> tuple[tuple[str, float], ...]:
    """The metrics that the paper prints for a row of one of our tables.

    >>> published("table3", "multirn-h")
    (('relational', 96.7), ('non_relational', 99.9))
    """
    key = TABLES[table].published
    assert key is not None, f"{table} is not the paper's"
    figures = published_rows(key)[row]
    return tuple((metric, figures[metric]) for metric in TABLES[table].metrics)
