"""`bcn export`: a trained model for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from bcn.cli import app


@app.command()
def export(
    weights: Annotated[str, typer.Argument(help="Name of shipped weights, a run's directory or a weights file.")],
    directory: Annotated[Path, typer.Argument(help="Where the file is written.")],
    to: Annotated[str, typer.Option(help="onnx, torch-export or safetensors.")] = "onnx",
) -> None:
    """Write a trained model for other programs, after comparing what is written with the model."""
    from bcn.ask import load
    from bcn.export import export as write

    written = write(load(weights), to, directory)
    print(f"{written.path}\ninputs: {written.free}\nlargest difference from the model: {written.difference:.1e}")
