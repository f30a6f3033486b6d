"""The option --device of every command that runs a model."""

from typing import Annotated

import typer

DeviceOption = Annotated[
    str | None, typer.Option(help="auto, cpu, cuda, cuda:1 or mps (default: BCN_DEVICE, else auto: CUDA or CPU).")
]
