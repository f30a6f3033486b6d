"""`bcn ship`."""

from pathlib import Path
from typing import Annotated

import typer

from bcn.cli import app


@app.command()
def ship(run: Annotated[Path, typer.Argument(help="The directory of a finished run.")]) -> None:
    """Put the best weights of a finished run into the package, with their evidence and a card."""
    from bcn.inference.release import release

    print(f"{release(run)}: `bcn.load` and `bcn ask` know it now")
