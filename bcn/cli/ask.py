"""`bcn ask` and `bcn find`."""

import io
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bcn.cli import app
from bcn.cli.device import DeviceOption
from bcn.cli.weights import WEIGHTS_HELP
from bcn.errors import BcnError, printable
from bcn.inference import DEFAULT_WEIGHTS

if TYPE_CHECKING:
    from PIL import Image

    from bcn.inference.answer import Answer
    from bcn.inference.broadcast import Broadcast
    from bcn.inference.reasoner import Reasoner

ImageArgument = Annotated[str, typer.Argument(metavar="IMAGE", help="An image file; - reads standard input.")]
MapOption = Annotated[
    Path | None,
    typer.Option("--map", help="Write the image, and over it where the broadcast vector comes from."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
RUNNERS_UP = 2
MAX_PIPED = 64 << 20
"""bytes of an image from standard input: more than any of 4,096 x 4,096 pixels in colour"""
ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff")
"""of what is an image and no question"""


@app.command()
def ask(
    images_and_questions: Annotated[
        list[str],
        typer.Argument(metavar="IMAGE... QUESTION...", help="Image files (- is standard input), then questions."),
    ],
    weights: Annotated[str, typer.Option(help=WEIGHTS_HELP)] = DEFAULT_WEIGHTS,
    map_: MapOption = None,
    as_json: JsonOption = False,
    device: DeviceOption = None,
) -> None:
    """Answer questions about an image, or about each of several."""
    from bcn.inference.reasoner import load
    from bcn.training.device import find_device

    images, questions = _divide(images_and_questions)
    if map_ is not None and len(images) > 1:
        raise BcnError(f"--map {map_}: it shows one image, and {len(images)} were given; ask about one at a time")
    reasoner, printed = load(weights).to(find_device(device)), []
    encoded = reasoner.encode(questions)
    for image in images:
        pixels = _read(image)
        answers, broadcast = reasoner.answer_with_broadcast(pixels, encoded)
        _write_map(reasoner, pixels, broadcast, map_)
        if as_json:
            printed.append(_content(reasoner, image, map_, answers=[answer.to_dict() for answer in answers]))
            continue
        if len(images) > 1:
            print(printable(image))
        for answer in answers:
            print(f"{printable(str(answer.question))}\n  {_line(answer)}")
            if answer.unknown:
                print(printable(f"  {reasoner.name} was not trained on: {', '.join(answer.unknown)}"))
    if as_json:
        print(json.dumps(printed if len(images) > 1 else printed[0], indent=2))


def _divide(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Images are the first argument and all that follow it and are files; the rest are questions."""
    count = 1
    while count < len(arguments) and os.path.isfile(arguments[count]):  # not Path.is_file: questions may be long
        count += 1
    images, questions = arguments[:count], arguments[count:]
    if not questions:
        raise BcnError(f"{arguments[-1]} is an image, and no question follows: give questions after the images")
    if missing := [question for question in questions if question.lower().endswith(ENDINGS)]:
        raise BcnError(f"there is no image {missing[0]}: give image files first, then questions")
    return images, questions


@app.command()
def find(
    image: ImageArgument,
    weights: Annotated[str, typer.Option(help=WEIGHTS_HELP)] = "scaled-mnist/bcn",
    map_: MapOption = None,
    as_json: JsonOption = False,
    device: DeviceOption = None,
) -> None:
    """Classify an image and, with weights that localise, find where the object is."""
    from bcn.inference.reasoner import load
    from bcn.training.device import find_device

    reasoner, pixels = load(weights).to(find_device(device)), _read(image)
    (answer,), broadcast = reasoner.answer_with_broadcast(pixels)
    _write_map(reasoner, pixels, broadcast, map_, answer.centre)
    if as_json:
        print(json.dumps(_content(reasoner, image, map_, **answer.to_dict()), indent=2))
        return
    print(_line(answer))
    if answer.centre is not None:
        x, y = answer.centre
        print(f"centre: x {x * pixels.width:.0f}, y {y * pixels.height:.0f} of {pixels.width}x{pixels.height}")


def _read(path: str) -> "Image.Image":
    from bcn.data.images import find_doubt

    image = _decode(path)
    if doubt := find_doubt(image):
        print(printable(f"bcn: {path}: {doubt}, so answers about it mean nothing"), file=sys.stderr)
    return image


def _decode(path: str) -> "Image.Image":
    from bcn.data.decode import ACCEPTED, decode_image
    from bcn.data.images import read_image

    if path != "-":
        return read_image(path)
    try:
        content = sys.stdin.buffer.read(MAX_PIPED + 1)
        if len(content) > MAX_PIPED:
            raise BcnError(f"standard input has more than {MAX_PIPED} bytes: pipe one image into it")
        return decode_image(io.BytesIO(content))
    except (OSError, ValueError) as error:
        raise BcnError(f"standard input is not an image: {error}; pipe a whole {ACCEPTED} file into it") from error


def _write_map(
    reasoner: "Reasoner",
    image: "Image.Image",
    broadcast: "Broadcast | None",
    path: Path | None,
    centre: tuple[float, float] | None = None,
) -> None:
    from bcn.inference.overlay import overlay, write_image

    if path is None:
        return
    if broadcast is None:
        raise BcnError(f"{reasoner.name} has no BCN and so no map: leave out --map, or choose other --weights")
    write_image(overlay(image, broadcast.counts(), broadcast.edges(), centre=centre), path)


def _line(answer: "Answer") -> str:
    others = ", ".join(f"{name} {100 * probability:.1f} %" for name, probability in answer.others[:RUNNERS_UP])
    return printable(f"{answer.answer} {100 * answer.probability:.1f} %  ({others})")


def _content(reasoner: "Reasoner", image: str, map_: Path | None, **content: Any) -> dict[str, Any]:
    """What is printed as JSON about an image."""
    written = {} if map_ is None else {"map": str(map_)}
    return {"weights": reasoner.name, "image": image, **content, **written}
