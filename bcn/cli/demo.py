"""`bcn demo`, which `make demo` runs."""

from pathlib import Path
from typing import Annotated

import typer

from bcn.cli import app
from bcn.cli.device import DeviceOption


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The directory to write pictures into.")] = Path("demo"),
    device: DeviceOption = None,
) -> None:
    """Make new scenes, answer all questions about them with the shipped weights, and draw some."""
    from bcn.inference.demo import demo as run
    from bcn.paper.tables import published
    from bcn.training.device import find_device

    run(out, published=dict(published("table3", "multirn-h")), device=find_device(device))
