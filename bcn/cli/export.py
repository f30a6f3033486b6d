"""`bcn export`: a trained model for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from bcn.cli import app


@app.command()
def export(
    weights: Annotated[str, typer.Argument(help="Name of shipped weights, a run's directory or a weights file.")],
    directory: Annotated[Path, typer.Argument(help="Where it is written.")],
    to: Annotated[str, typer.Option(help="onnx, torch-export, safetensors or web.")] = "onnx",
    runtime: Annotated[
        Path | None, typer.Option(help="For web: the unpacked npm package onnxruntime-web (default: npm fetches it).")
    ] = None,
) -> None:
    """Write a trained model for other programs, after comparing what is written with the model."""
    from bcn.inference.export import TOLERANCE
    from bcn.inference.export import export as write
    from bcn.inference.reasoner import load

    written = write(load(weights), to, directory, runtime=runtime)
    print(f"{written.path}\ninputs: {written.free}")
    print(f"largest difference from the model: {written.difference:.1e} of the outputs' size (accepted: {TOLERANCE:g})")
