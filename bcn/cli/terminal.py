"""Tables and lists that fit the terminal: folded at its width, which is 80 columns where there is none."""

import shutil
import sys
import textwrap
from collections.abc import Sequence

from bcn.errors import printable

NARROW = 80
"""columns of a pipe or a file"""


def columns() -> int:
    return max(40, shutil.get_terminal_size((NARROW, 24)).columns) if sys.stdout.isatty() else NARROW


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, all columns but the first to the right; a cell that is too wide is folded, never cut off."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number else "left", overflow="fold", no_wrap=not number)
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    Console(width=columns()).print(table)


def print_entry(name: str, about: str) -> None:
    """A name on a line of its own, and under it what it is; paths stay whole, to be copied."""
    lines = textwrap.wrap(printable(about), columns() - 4, break_long_words=False, break_on_hyphens=False)
    print(printable(name), *(f"    {line}" for line in lines), sep="\n")
