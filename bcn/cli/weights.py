"""`bcn weights`, and the argument of every command that takes weights."""

import json
from typing import Annotated, Any

import typer

from bcn.cli import app

WEIGHTS_HELP = "Name of shipped weights, a run's directory or a weights file."
WeightsArgument = Annotated[str, typer.Argument(help=WEIGHTS_HELP)]


@app.command()
def weights(as_json: Annotated[bool, typer.Option("--json", help="Print the whole index.")] = False) -> None:
    """List the weights that ship with the package, with their accuracy."""
    from bcn.cli.terminal import print_table
    from bcn.inference.shipped import list_weights

    index = list_weights()
    if as_json:
        print(json.dumps(index, indent=2))
        return
    rows = [(name, entry["data"], *_accuracy(entry["metrics"])) for name, entry in index.items()]
    print_table(("name", "trained on", "accuracy", "and"), rows)


def _accuracy(metrics: dict[str, Any]) -> tuple[str, str]:
    """On the test split: of all questions or images, and what else the models of a family are judged by.

    >>> _accuracy({"all": {"accuracy": 0.98}, "relational": {"accuracy": 0.975}})
    ('98.0 %', '97.5 % relational')
    """
    beside = ""
    for group in {"relational", "binary"} & metrics.keys():
        beside = f"{100 * metrics[group]['accuracy']:.1f} % {group}"
    if "localisation" in metrics:
        beside = f"{metrics['localisation']:.3f} off centre"
    return f"{100 * metrics['all']['accuracy']:.1f} %", beside
