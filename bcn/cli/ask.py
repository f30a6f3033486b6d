"""`bcn ask` and `bcn find`."""

import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bcn.cli import app
from bcn.cli.device import DeviceOption
from bcn.errors import printable
from bcn.inference import DEFAULT_WEIGHTS

if TYPE_CHECKING:
    from PIL import Image

    from bcn.inference.answer import Answer
    from bcn.inference.broadcast import Broadcast
    from bcn.inference.reasoner import Reasoner

ImageArgument = Annotated[str, typer.Argument(metavar="IMAGE", help="An image file; - reads standard input.")]
MapOption = Annotated[
    Path | None, typer.Option("--map", help="Write the image with the activation map of the BCN over it.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
WEIGHTS_HELP = "Name of shipped weights, a run's directory or a weights file."
RUNNERS_UP = 2


@app.command()
def ask(
    image: ImageArgument,
    questions: Annotated[list[str], typer.Argument(metavar="QUESTION...", help="Questions in English.")],
    weights: Annotated[str, typer.Option(help=WEIGHTS_HELP)] = DEFAULT_WEIGHTS,
    map_: MapOption = None,
    as_json: JsonOption = False,
    device: DeviceOption = None,
) -> None:
    """Answer questions about an image."""
    from bcn.inference.reasoner import load
    from bcn.training.device import find_device

    reasoner, pixels = load(weights).to(find_device(device)), _read(image)
    answers, broadcast = reasoner.answer_with_broadcast(pixels, reasoner.encode(questions))
    _write_map(reasoner, pixels, broadcast, map_)
    if as_json:
        _print_json(reasoner, image, map_, answers=[answer.to_dict() for answer in answers])
        return
    for answer in answers:
        print(f"{printable(str(answer.question))}\n  {_line(answer)}")


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
        _print_json(reasoner, image, map_, **answer.to_dict())
        return
    print(_line(answer))
    if answer.centre is not None:
        x, y = answer.centre
        print(f"centre: x {x * pixels.width:.0f}, y {y * pixels.height:.0f} of {pixels.width}x{pixels.height}")


def _read(path: str) -> "Image.Image":
    from bcn.data.decode import ACCEPTED, decode_image
    from bcn.data.images import read_image
    from bcn.errors import BcnError

    if path != "-":
        return read_image(path)
    try:
        return decode_image(io.BytesIO(sys.stdin.buffer.read()))
    except (OSError, ValueError) as error:
        raise BcnError(f"standard input is not an image: {error}; pipe a whole {ACCEPTED} file into it") from error


def _write_map(
    reasoner: "Reasoner",
    image: "Image.Image",
    broadcast: "Broadcast | None",
    path: Path | None,
    centre: tuple[float, float] | None = None,
) -> None:
    from bcn.errors import BcnError
    from bcn.inference.overlay import overlay, write_image

    if path is None:
        return
    if broadcast is None:
        raise BcnError(f"{reasoner.name} has no BCN and so no map: leave out --map, or choose other --weights")
    write_image(overlay(image, broadcast.counts(), centre=centre), path)


def _line(answer: "Answer") -> str:
    others = ", ".join(f"{name} {100 * probability:.1f} %" for name, probability in answer.others[:RUNNERS_UP])
    return printable(f"{answer.answer} {100 * answer.probability:.1f} %  ({others})")


def _print_json(reasoner: "Reasoner", image: str, map_: Path | None, **content: Any) -> None:
    written = {} if map_ is None else {"map": str(map_)}
    print(json.dumps({"weights": reasoner.name, "image": image, **content, **written}, indent=2))
