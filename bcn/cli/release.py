"""`bcn release`."""

from pathlib import Path
from typing import Annotated

import typer

from bcn.cli import MAINTAINERS, app


@app.command(rich_help_panel=MAINTAINERS)
def release(run: Annotated[Path, typer.Argument(help="The directory of a finished run.")]) -> None:
    """Put the best weights of a finished run into the package, with their evidence and a model card."""
    from bcn.inference.release import release as add

    print(f"{add(run)}: `bcn.load` and `bcn ask` know it now")
