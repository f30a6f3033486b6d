"""`bcn clevr`: make scenes, questions and pictures like CLEVR's; answer CLEVR's questions."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bcn.cli import app
from bcn.errors import BcnError

if TYPE_CHECKING:
    from torch import nn

commands = typer.Typer(help="Make images and questions like CLEVR's, and answer CLEVR's.", no_args_is_help=True)
app.add_typer(commands, name="clevr")

WeightsArgument = Annotated[Path, typer.Argument(help="A run's directory, or a weights file that `bcn train` wrote.")]


@commands.command()
def make(
    directory: Annotated[Path, typer.Argument(help="Where to write, in CLEVR's layout.")],
    images: Annotated[int, typer.Option(min=1, help="How many images, each with ten questions.")] = 10_000,
    split: Annotated[str, typer.Option(help="The name of the split: letters, digits, underscores.")] = "train",
    seed: Annotated[int, typer.Option(min=0, help="Decides what is made, together with the split.")] = 0,
    size: Annotated[int, typer.Option(min=16, max=1024, help="Width and height of the pictures.")] = 128,
    shard: Annotated[str, typer.Option(help="Make one of several parts: 3/8 is the third of eight.")] = "1/1",
    jobs: Annotated[int, typer.Option(min=1, help="How many processes.")] = 1,
) -> None:
    """Make clevr-like-v1; run it again to go on where it stopped. The shard that ends last joins the parts."""
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    from bcn.data.clevr_like.make import Order, make_clevr_like, share

    if not (part := re.fullmatch(r"([1-9][0-9]*)/([1-9][0-9]*)", shard)):
        raise BcnError(f"--shard {shard}: give the number of the shard and how many there are, as in 3/8")
    order, number, shards = Order(split, seed, size), int(part[1]), int(part[2])
    columns = (*Progress.get_default_columns()[:-1], MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task(f"{split} {shard}", total=sum(map(len, share(images, (number, shards)))))
        whole = make_clevr_like(
            directory,
            order,
            images,
            shard=(number, shards),
            jobs=jobs,
            done=lambda count: progress.advance(bar, count),
        )
    print(f"{directory} {split}: " + ("whole" if whole else f"shard {shard} is done, others are not yet"))


@commands.command()
def answer(
    weights: WeightsArgument,
    directory: Annotated[Path, typer.Argument(help="Images and questions, in CLEVR's layout or your own.")],
    split: Annotated[str, typer.Option(help="Whose questions; they need no answers.")] = "test",
    out: Annotated[Path, typer.Option(help=".txt: an answer per line; .json: with question_index.")] = Path(
        "answers.txt"
    ),
) -> None:
    """Answer the questions of a split into a file, for a test split whose answers others keep."""
    from bcn.data.vqa.load import open_questions
    from bcn.data.vqa.vocabulary import Vocabulary
    from bcn.inference.predict import predict
    from bcn.io import atomic_write

    if out.suffix not in (".txt", ".json"):
        raise BcnError(f"--out {out}: give a name that ends in .txt, an answer per line, or in .json")
    model, description, size = _trained(weights)
    words = Vocabulary(tuple(description["words"]))
    dataset = open_questions(directory, split, size=size, vocabulary=words, answers=description["answers"])
    predictions = predict(model, dataset, name=description["model"])
    if out.suffix == ".json":
        text = json.dumps([prediction._asdict() for prediction in predictions])
    else:
        text = "\n".join(prediction.answer for prediction in predictions)
    with atomic_write(out) as temporary:
        temporary.write_text(text + "\n")
    print(f"{out}: {len(predictions):,} answers to {directory} {split}")


@commands.command()
def transfer(
    weights: WeightsArgument,
    data: Annotated[Path | None, typer.Option(help="Where original images and scenes lie (default: BCN_DATA).")] = None,
    split: Annotated[str, typer.Option(help="Whose images.")] = "val",
    questions: Annotated[int, typer.Option(min=1, max=200, help="How many questions about each image.")] = 40,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, a record, instead of a table.")] = False,
) -> None:
    """Ask about CLEVR's original images what our grammar makes of their scenes; accuracy with 95 % intervals."""
    import torch

    from bcn.cli.metrics import print_metrics
    from bcn.data.clevr_like.transfer import open_transfer
    from bcn.training.environment import commit
    from bcn.training.forward import check_fit
    from bcn.training.metrics import compute_metrics, evaluate

    model, description, size = _trained(weights)
    dataset = open_transfer(
        words=tuple(description["words"]),
        answers=tuple(description["answers"]),
        data=data,
        split=split,
        size=size,
        questions=questions,
    )
    check_fit(model, dataset, description["model"])
    metrics = compute_metrics(evaluate(model, dataset, batch_size=16), dataset)
    if as_json:
        about = {"data": dataset.name, "split": split, "images": len(dataset.image)}
        about |= {key: description[key] for key in ("model", "recipe", "scale", "seed", "epoch")}
        where = {
            "threads": torch.get_num_threads(),
            "commit": commit(),
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        print(json.dumps(about | {"metrics": metrics} | where, indent=1))
    else:
        print_metrics(f"{description['model']} on {len(dataset.image)} original images of {split}", metrics)


def _trained(weights: Path) -> "tuple[nn.Module, dict[str, Any], int]":
    """A model that is asked in words, what its file says of it, and the size of its images."""
    import torch

    from bcn.models.registry import image_shape
    from bcn.training.environment import default_threads, keep_memory
    from bcn.training.weights import load_model

    keep_memory()
    torch.set_num_threads(default_threads())
    model, description = load_model(weights)
    if "words" not in description:
        raise BcnError(f"{weights} holds {description['model']}, which is not asked in words: give a model of CLEVR's")
    return model, description, image_shape(description["model"])[1]
