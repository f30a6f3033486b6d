"""`bcn demo`, which `make demo` runs."""

from pathlib import Path
from typing import Annotated

import typer

from bcn.cli import app


@app.command()
def demo(out: Annotated[Path, typer.Option(help="The directory to write pictures into.")] = Path("demo")) -> None:
    """Make new scenes, answer all questions about them with the shipped weights, and draw some."""
    from bcn.inference.demo import demo as run
    from bcn.paper.tables import published

    run(out, published=dict(published("table3", "multirn-h")))
