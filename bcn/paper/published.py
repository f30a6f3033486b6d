"""What the paper prints, read from tables.toml."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def _tables() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("tables.toml").read_text(encoding="utf-8"))


def published_rows(table: str) -> dict[str, dict[str, Any]]:
    """The rows of one table of tables.toml by name, in the paper's order.

    >>> published_rows("sort_of_clevr")["multirn-h"]["relational"]
    96.7
    """
    return {row.get("name") or size_name(row["sizes"]): row for row in _tables().get(table, ())}


def size_name(sizes: list[int] | tuple[int, ...]) -> str:
    """The name of a row of appendix table 3.

    >>> size_name([128, 128, 256]), size_name([])
    ('128-128-256', 'none')
    """
    return "-".join(map(str, sizes)) or "none"
