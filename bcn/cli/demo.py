"""`bcn demo`, which `make demo` runs."""

from pathlib import Path
from typing import Annotated

import typer

from bcn.cli import app


@app.command()
def demo(out: Annotated[Path, typer.Option(help="Where pictures are written.")] = Path("demo")) -> None:
    """Do the main job once: make new scenes, answer all questions about them, draw some."""
    from bcn.inference.demo import demo as run

    run(out)
