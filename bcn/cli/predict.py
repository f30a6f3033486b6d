"""`bcn predict`: answers to many questions about many images, in a file."""

from pathlib import Path
from typing import Annotated

import typer

from bcn.cli import app
from bcn.cli.device import DeviceOption
from bcn.cli.weights import WeightsArgument
from bcn.errors import BcnError


@app.command()
def predict(
    weights: WeightsArgument,
    data: Annotated[
        Path | None, typer.Option(help="A folder of images and questions, yours or in CLEVR's layout.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="With --data: only the questions of this split.")] = None,
    images: Annotated[str | None, typer.Option(help="Instead of --data: a pattern of image files, in quotes.")] = None,
    questions: Annotated[
        Path | None, typer.Option(help="With --images: a text file with a question in every line.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The file to write, .csv or .jsonl.")] = Path("answers.csv"),
    device: DeviceOption = None,
) -> None:
    """Answer many questions about many images: answer, probability and runner-up of each, in a file."""
    from bcn.inference.batch import answer_all, check_answers_file, questions_about, questions_of_folder, write_answers
    from bcn.inference.reasoner import load
    from bcn.training.device import find_device

    check_answers_file(out)
    if data is not None and images is None and questions is None:
        asked = questions_of_folder(data, split)
    elif images is not None and questions is not None and data is None and split is None:
        asked = questions_about(images, questions)
    else:
        raise BcnError("give --data FOLDER, or --images PATTERN with --questions FILE")
    reasoner = load(weights).to(find_device(device))
    print(f"{out}: {write_answers(answer_all(reasoner, asked), out):,} answers")
