"""`bcn clevr`: make scenes, questions and images like CLEVR's; answer CLEVR's questions."""

import json
import re
from pathlib import Path
from typing import Annotated

import typer

from bcn.cli import app
from bcn.cli.device import DeviceOption
from bcn.errors import BcnError

commands = typer.Typer(help="Make images and questions like CLEVR's, and answer CLEVR's.", no_args_is_help=True)
app.add_typer(commands, name="clevr")

WeightsArgument = Annotated[Path, typer.Argument(help="A run's directory, or a weights file that `bcn train` wrote.")]


@commands.command()
def make(
    directory: Annotated[Path, typer.Argument(help="Where to write, in CLEVR's layout.")],
    images: Annotated[int, typer.Option(min=1, help="How many images, each with ten questions.")] = 10_000,
    split: Annotated[str, typer.Option(help="The name of the split: letters, digits, underscores.")] = "train",
    seed: Annotated[int, typer.Option(min=0, help="Determines what is made, together with the split.")] = 0,
    size: Annotated[int, typer.Option(min=16, max=1024, help="Width and height of the images.")] = 128,
    shard: Annotated[str, typer.Option(help="Make one of several shards: 3/8 is the third of eight.")] = "1/1",
    jobs: Annotated[int, typer.Option(min=1, help="How many processes.")] = 1,
) -> None:
    """Make clevr-like-v1; run it again to resume. The shard that ends last joins all of them."""
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    from bcn.data.clevr_like.make import SplitSpec, make_clevr_like, shard_parts

    if not (match := re.fullmatch(r"([1-9][0-9]*)/([1-9][0-9]*)", shard)):
        raise BcnError(f"--shard {shard}: give the number of the shard and how many there are, as in 3/8")
    spec, part = SplitSpec(split, seed, size), (int(match[1]), int(match[2]))
    columns = (*Progress.get_default_columns()[:-1], MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task(f"{split} {shard}", total=sum(map(len, shard_parts(images, part))))
        whole = make_clevr_like(
            directory, spec, images, shard=part, jobs=jobs, done=lambda count: progress.advance(bar, count)
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
    device: DeviceOption = None,
) -> None:
    """Answer the questions of a split into a file, for a test split whose answers are withheld."""
    from bcn.data.vqa.load import open_questions
    from bcn.data.vqa.vocabulary import Vocabulary
    from bcn.inference.predict import check_suffix, load_question_model, predict, write_predictions

    check_suffix(out)
    model, description, size = load_question_model(weights, device=device)
    words = Vocabulary(tuple(description["words"]))
    dataset = open_questions(directory, split, size=size, vocabulary=words, answers=description["answers"])
    predictions = predict(model, dataset, name=description["model"])
    write_predictions(predictions, out)
    print(f"{out}: {len(predictions):,} answers to {directory} {split}")


@commands.command()
def transfer(
    weights: WeightsArgument,
    data: Annotated[Path | None, typer.Option(help="Where original images and scenes lie (default: BCN_DATA).")] = None,
    split: Annotated[str, typer.Option(help="Whose images.")] = "val",
    questions: Annotated[int, typer.Option(min=1, max=200, help="How many questions about each image.")] = 40,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, a record, instead of a table.")] = False,
    device: DeviceOption = None,
) -> None:
    """Ask about CLEVR's original images what our grammar makes of their scenes; accuracy with 95 % intervals."""
    from bcn.cli.metrics import print_metrics
    from bcn.inference.predict import load_question_model
    from bcn.inference.transfer import evaluate_transfer
    from bcn.io import with_checksum

    loaded = load_question_model(weights, device=device)
    record = evaluate_transfer(*loaded, data=data, split=split, questions=questions)
    if as_json:
        print(json.dumps(with_checksum(record), indent=1))
    else:
        print_metrics(f"{record['model']} on {record['images']} original images of {split}", record["metrics"])
