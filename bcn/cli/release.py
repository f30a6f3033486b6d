"""`bcn release`."""

from pathlib import Path
from typing import Annotated

import typer

from bcn.cli import MAINTAINERS, app


@app.command(rich_help_panel=MAINTAINERS)
def release(
    run: Annotated[Path, typer.Argument(help="The directory of a finished run.")],
    half: Annotated[bool, typer.Option(help="Ship float16, tested again as shipped, or float32.")] = False,
    data: Annotated[Path | None, typer.Option(help="Where the run's data lies, to test (default: BCN_DATA).")] = None,
) -> None:
    """Put the best weights of a finished run into the package, with their evidence and a model card."""
    from bcn.errors import BcnError
    from bcn.inference.release import release as add
    from bcn.paper.tables import find_recipe
    from bcn.training.recipe import fingerprint
    from bcn.training.run import find_run

    recipe = find_run(run).recipe
    if fingerprint(recipe) != fingerprint(find_recipe(recipe.name, recipe.scale)):
        raise BcnError(f"{run} was not trained by {recipe.name} as it is now; only that is released, so train it")
    print(f"{add(run, half=half, data=data)}: `bcn.load` and `bcn ask` know it now")
