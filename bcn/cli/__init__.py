"""The `bcn` command. Each module here adds the commands of one subject; none imports torch before a command runs."""

import os
import sys
import warnings
from io import TextIOWrapper
from typing import Annotated

import typer

from bcn import __version__
from bcn.errors import BcnError, DoubtWarning, printable

app = typer.Typer(
    name="bcn",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

MAINTAINERS = "For maintainers"
"""the panel of `bcn --help` for commands that users do not need"""


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=lambda given: _print_version(given))
    ] = False,
) -> None:
    """Broadcasting Convolutional Networks for visual relational reasoning."""


def _print_version(given: bool) -> None:
    if given:
        print(f"bcn {__version__}")
        raise typer.Exit


def main() -> None:
    """Run a command; bad input is one sentence on standard error and exit code 2."""
    if isinstance(sys.stdout, TextIOWrapper):  # a Windows pipe is not UTF-8, and must not end a command at a "±"
        sys.stdout.reconfigure(errors="replace")
    write = warnings.formatwarning

    def write_doubt(
        message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
    ) -> str:
        if issubclass(category, DoubtWarning):
            return printable(f"bcn: {message}\n")
        return write(message, category, filename, lineno, line)

    warnings.formatwarning = write_doubt
    try:
        app()
    except BcnError as error:
        if "TORCHELASTIC_RUN_ID" not in os.environ or os.environ.get("LOCAL_RANK", "0") == str(error.reporter):
            print(f"bcn: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        sys.exit(141)


# In the order of `bcn --help`, which is not that of the alphabet.
# isort: off
from bcn.cli import demo as demo  # noqa: E402
from bcn.cli import weights as weights  # noqa: E402
from bcn.cli import ask as ask  # noqa: E402
from bcn.cli import predict as predict  # noqa: E402
from bcn.cli import serve as serve  # noqa: E402
from bcn.cli import export as export  # noqa: E402
from bcn.cli import models as models  # noqa: E402
from bcn.cli import data as data  # noqa: E402
from bcn.cli import clevr as clevr  # noqa: E402
from bcn.cli import train as train  # noqa: E402
from bcn.cli import runs as runs  # noqa: E402
from bcn.cli import doctor as doctor  # noqa: E402
from bcn.cli import paper as paper  # noqa: E402
from bcn.cli import bench as bench  # noqa: E402
from bcn.cli import release as release  # noqa: E402
