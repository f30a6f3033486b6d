"""`bcn demo`, which `make demo` runs."""

from pathlib import Path
from typing import Annotated

import typer

from bcn.cli import app


@app.command()
def demo(out: Annotated[Path, typer.Option(help="Where pictures are written.")] = Path("demo")) -> None:
    """Do the main job once: make scenes, train briefly, answer questions about new scenes, draw them."""
    from bcn.demo import demo as run

    run(out)
