"""`bcn clevr`: make scenes, questions and pictures like CLEVR's."""

from pathlib import Path
from typing import Annotated

import typer

from bcn.cli import app
from bcn.errors import BcnError

commands = typer.Typer(help="Make images and questions like CLEVR's.", no_args_is_help=True)
app.add_typer(commands, name="clevr")


@commands.command()
def make(
    directory: Annotated[Path, typer.Argument(help="Where to write, in CLEVR's layout.")],
    images: Annotated[int, typer.Option(min=1, help="How many images, each with ten questions.")] = 10_000,
    split: Annotated[str, typer.Option(help="The name of the split.")] = "train",
    seed: Annotated[int, typer.Option(min=0, help="Decides what is made, together with the split.")] = 0,
    size: Annotated[int, typer.Option(min=16, max=1024, help="Width and height of the pictures.")] = 128,
    shard: Annotated[str, typer.Option(help="Make one of several parts: 3/8 is the third of eight.")] = "1/1",
    jobs: Annotated[int, typer.Option(min=1, help="How many processes.")] = 1,
) -> None:
    """Make clevr-like-v1; run it again to go on where it stopped. The shard that ends last joins the parts."""
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    from bcn.data.clevr.make import Order, make_clevr_like

    try:
        number, shards = (int(text) for text in shard.split("/"))
    except ValueError:
        raise BcnError(f"--shard {shard}: give the number of the shard and how many there are, as in 3/8") from None
    columns = (*Progress.get_default_columns()[:-1], MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task(f"{split} {shard}", total=images / shards)
        whole = make_clevr_like(
            directory,
            Order(split, seed, size),
            images,
            shard=(number, shards),
            jobs=jobs,
            done=lambda count: progress.advance(bar, count),
        )
    print(f"{directory} {split}: " + ("whole" if whole else f"shard {shard} is done, others are not yet"))
