"""`bcn clevr`: make scenes, questions and images like CLEVR's; answer CLEVR's questions."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from bcn.cli import app
from bcn.cli.device import DeviceOption
from bcn.cli.weights import WeightsArgument
from bcn.errors import BcnError

commands = typer.Typer(help="Make images and questions like CLEVR's, and answer CLEVR's.", no_args_is_help=True)
app.add_typer(commands, name="clevr")

ExtrasOption = Annotated[str, typer.Option(help="More files for each image: masks,boxes,depth.")]


@commands.command()
def make(
    directory: Annotated[Path, typer.Argument(help="Where to write, in CLEVR's layout.")],
    images: Annotated[int, typer.Option(min=1, help="How many images, each with ten questions.")] = 10_000,
    split: Annotated[str, typer.Option(help="The name of the split: letters, digits, underscores.")] = "train",
    seed: Annotated[int, typer.Option(min=0, help="Determines what is made, together with the split.")] = 0,
    size: Annotated[int, typer.Option(min=16, max=1024, help="Width and height of the images.")] = 128,
    shard: Annotated[str, typer.Option(help="Make one of several shards: 3/8 is the third of eight.")] = "1/1",
    jobs: Annotated[int, typer.Option(min=1, help="How many processes.")] = 1,
    grammar: Annotated[str, typer.Option(help="Whose questions: clevr-like-v1 or clevr-like-v2.")] = "clevr-like-v1",
    shapes: Annotated[str | None, typer.Option(help="Of cube,sphere,cylinder,cone,torus; the first three.")] = None,
    colors: Annotated[str | None, typer.Option(help="CLEVR's, and your own: red,teal:#2aa198.")] = None,
    objects: Annotated[str, typer.Option(help="How many a scene has, up to 20.")] = "3-10",
    extras: ExtrasOption = "",
) -> None:
    """Make clevr-like-v1 or clevr-like-v2; run it again to resume. The shard that ends last joins all of them.

    With other shapes, colors or numbers of objects it is clevr-like-custom.
    """
    from bcn.data.clevr_like.make import make_clevr_like, shard_parts
    from bcn.data.clevr_like.spec import SplitSpec

    if not (match := re.fullmatch(r"([1-9][0-9]*)/([1-9][0-9]*)", shard)):
        raise BcnError(f"--shard {shard}: give the number of the shard and how many there are, as in 3/8")
    chosen = {name: text for name, text in (("shapes", shapes), ("colors", colors)) if text is not None}
    spec, part = (
        SplitSpec(split, seed, size, grammar, objects=objects, extras=extras, **chosen),
        (int(match[1]), int(match[2])),
    )
    with _progress(f"{split} {shard}", sum(map(len, shard_parts(images, part)))) as done:
        whole = make_clevr_like(directory, spec, images, shard=part, jobs=jobs, done=done)
    print(f"{directory} {split}: " + ("whole" if whole else f"shard {shard} is done, others are not yet"))


@commands.command()
def render(
    scenes: Annotated[Path, typer.Argument(help="A file of scenes: CLEVR's own, ours, or yours in its JSON.")],
    out: Annotated[Path, typer.Option(help="Where to write.")] = Path("rendered"),
    size: Annotated[str, typer.Option(help="Width and height of the images.")] = "480x320",
    extras: ExtrasOption = "",
    images: Annotated[bool, typer.Option(help="Render the images, or write extras alone.")] = True,
    jobs: Annotated[int, typer.Option(min=1, help="How many processes.")] = 1,
) -> None:
    """Render the scenes of a file, original CLEVR's included; run it again to resume."""
    from bcn.data.clevr_like.rerender import RenderOrder, render_file

    match = re.fullmatch(r"([1-9][0-9]{1,3})x([1-9][0-9]{1,3})", size)
    if not match or not all(16 <= int(side) <= 4096 for side in match.groups()):
        raise BcnError(f"--size {size}: give width and height in pixels, 16 to 4096, as in 480x320")
    order = RenderOrder(out, int(match[1]), int(match[2]), extras, images)
    with _progress(scenes.name, None) as done:
        count = render_file(scenes, order, jobs=jobs, done=done)
    print(f"{out}: {count:,} scenes")


@contextmanager
def _progress(title: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar of images, and what moves it."""
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (*Progress.get_default_columns()[:-1], MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task(title, total=total)
        yield lambda count: progress.advance(bar, count)


@commands.command()
def statistics(
    directory: Annotated[Path | None, typer.Argument(help="Questions with programs, in CLEVR's layout.")] = None,
    split: Annotated[str, typer.Option(help="Whose questions.")] = "val",
    scenes: Annotated[int, typer.Option(min=1, help="How many scenes our versions are asked about.")] = 300,
) -> None:
    """Compare the questions of clevr-like-v1, clevr-like-v2, a directory and what is known of CLEVR's, as Markdown."""
    from bcn.data.clevr_like.statistics import compare_columns, describe_questions, describe_versions
    from bcn.data.vqa.json_stream import stream_list
    from bcn.data.vqa.layouts import questions_file

    columns = describe_versions(scenes)
    if directory is not None:
        columns[f"{directory.name} {split}"] = describe_questions(
            stream_list(questions_file(directory, split), "questions")
        )
    print(compare_columns(columns))


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
    grammar: Annotated[str | None, typer.Option(help="Whose questions (default: those it was trained on).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, a record, instead of a table.")] = False,
    device: DeviceOption = None,
) -> None:
    """Ask about CLEVR's original images what our grammars make of their scenes; accuracy with 95 % intervals."""
    from bcn.cli.metrics import print_metrics
    from bcn.inference.predict import load_question_model
    from bcn.inference.transfer import evaluate_transfer
    from bcn.io import with_checksum

    loaded = load_question_model(weights, device=device)
    record = evaluate_transfer(*loaded, data=data, split=split, questions=questions, grammar=grammar)
    if as_json:
        print(json.dumps(with_checksum(record), indent=1))
    else:
        about = f"{record['model']} on {record['images']} original images of {split} ({record['data']})"
        print_metrics(about, record["metrics"])
