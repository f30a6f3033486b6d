"""`bcn export`: a trained model for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from bcn.cli import app


@app.command()
def export(
    weights: Annotated[
        list[str], typer.Argument(help="Name of shipped weights, a run's directory or a weights file; several for web.")
    ],
    directory: Annotated[Path, typer.Argument(help="The directory to write into.")],
    to: Annotated[str, typer.Option(help="onnx, torch-export, safetensors or web.")] = "onnx",
    runtime: Annotated[
        Path | None, typer.Option(help="For web: the unpacked npm package onnxruntime-web (default: npm fetches it).")
    ] = None,
) -> None:
    """Export a trained model, after comparing the exported one with the original."""
    from bcn.errors import BcnError, did_you_mean
    from bcn.inference.export import FORMATS, TOLERANCE
    from bcn.inference.export import export as write
    from bcn.inference.reasoner import load

    if to == "web":
        from bcn.web.static_site import write_site

        result = write_site([load(name) for name in weights], directory, runtime=runtime)
    elif to in FORMATS:
        if len(weights) > 1:
            raise BcnError(f"{' '.join(weights)}: one model at a time is exported to {to}, several to web alone")
        result = write(load(weights[0]), to, directory)
    else:
        raise did_you_mean("format", to, (*FORMATS, "web"))
    print(f"{result.path}\ninputs: {result.shapes}")
    print(f"largest difference from the model: {result.difference:.1e} of the outputs' size (accepted: {TOLERANCE:g})")
