"""`bcn runs`: list runs, and write the page about one."""

import json
from pathlib import Path
from typing import Annotated

import typer

from bcn.cli import app
from bcn.cli.terminal import print_table
from bcn.cli.train import DataOption, leave

commands = typer.Typer(invoke_without_command=True)
app.add_typer(commands, name="runs")


@commands.callback()
def runs(
    context: typer.Context,
    directory: Annotated[Path, typer.Option("--runs", help="The directory of all runs.")] = Path("runs"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List runs: state, progress, best accuracy and time left."""
    if context.invoked_subcommand is None:
        print_runs(directory, as_json=as_json)


def print_runs(directory: Path, *, as_json: bool = False) -> None:
    """Print a line for each run in a directory, or all that is known of them as JSON."""
    from bcn.training.overview import summarise_runs
    from bcn.training.progress import duration

    found = summarise_runs(directory)
    if as_json:
        print(json.dumps([run._asdict() for run in found], indent=2))
        return
    rows = [
        (run.name, run.state, run.epochs, run.metric, "-" if run.seconds_left is None else duration(run.seconds_left))
        for run in found
    ]
    print_table(("run", "state", "epochs", "best", "left"), rows)


@commands.command()
def report(
    run: Annotated[Path, typer.Argument(help="The directory of a finished run.")],
    data: DataOption = None,
    blind: Annotated[
        Path | None, typer.Option(help="A run of a blind model to compare with (own: trained by default).")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The page to write (default: report.html in the run).")] = None,
) -> None:
    """Write a page about a run: accuracy beside guesses, by kind, curves, and the worst answers with pictures."""
    from bcn.inference.report import report_run
    from bcn.training.interrupts import Interrupted
    from bcn.training.run import find_run

    try:
        print(report_run(find_run(run), data=data, blind=blind, out=out))
    except Interrupted as stopped:
        leave(stopped)
