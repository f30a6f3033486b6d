"""`bcn recipes`, `bcn table`, `bcn plot`, `bcn figure` and `bcn report`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from bcn.cli import MAINTAINERS, app
from bcn.cli.train import ScaleOption, leave
from bcn.errors import BcnError

ResultsOption = Annotated[Path, typer.Option(help="Where the records of finished runs are kept.")]


@app.command()
def recipes(
    table: Annotated[str | None, typer.Argument(help="Only this table's: table3.")] = None,
    scale: ScaleOption = "cpu",
) -> None:
    """List what can be trained: a recipe for each row of the paper's tables and ours."""
    from bcn.paper.tables import find_recipe, find_row, find_table, list_recipes

    for name in list_recipes(find_table(table).name if table else None):
        recipe = find_recipe(name, scale)
        about = find_row(name).about if recipe.name == name else f"as {recipe.name}"
        paper = ", ".join(f"{metric} {value:g}" for metric, value in recipe.paper)
        print(f"{name:38} {about}; {recipe.epochs} epochs of {recipe.data.name}; paper: {paper}")


@app.command()
def table(
    name: Annotated[str, typer.Argument(help="Such as table3; `bcn recipes` lists the rows of all tables.")],
    scale: ScaleOption = "cpu",
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each row: seeds 0, 1, ...")] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="Runs in parallel; two or more have one thread each.")] = 1,
    train: Annotated[
        bool, typer.Option("--train/--no-train", help="Train missing runs or only write the table.")
    ] = True,
    plan: Annotated[bool, typer.Option("--plan", help="Only measure how long the missing runs take.")] = False,
    rows: Annotated[str, typer.Option(help="Only these rows, separated by commas.")] = "",
    runs: Annotated[Path, typer.Option(help="Where the directories of runs are.")] = Path("runs"),
    results: ResultsOption = Path("results"),
) -> None:
    """Make a table of the paper: train the runs that are missing, then write it as markdown and CSV."""
    from bcn.paper.plan import plan_table, train_all
    from bcn.paper.render import write_table
    from bcn.paper.tables import find_recipe, find_table, list_recipes
    from bcn.training.interrupts import Interrupted
    from bcn.training.progress import say

    found = find_table(name)
    find_recipe(list_recipes(name)[0], scale)  # refuses an unknown scale
    places, failed = {"runs": runs, "results": results}, []
    if train:
        chosen = [row for row in rows.split(",") if row]
        planned = plan_table(found, scale, seeds=seeds, rows=chosen, jobs=jobs, synthetic=plan, **places)
        try:
            failed = train_all([] if plan else planned, jobs=jobs, **places)
        except Interrupted as stopped:
            leave(stopped)
    text, paths = write_table(found, scale, results)
    print(text)
    say(f"written: {', '.join(map(str, paths))}")
    if failed:
        raise BcnError(f"these runs failed, see above: {', '.join(failed)}; the same command tries them again")


@app.command()
def plot(
    runs: Annotated[list[Path], typer.Argument(help="Directories of runs.")],
    out: Annotated[Path, typer.Option(help="The picture to write, .png or .svg.")] = Path("curves.png"),
) -> None:
    """Draw loss and accuracy of several runs over their epochs."""
    from bcn.paper.figures import curves
    from bcn.paper.figures.style import write
    from bcn.training.run import find_run

    drawn = {}
    for run in map(find_run, runs):
        label = " ".join([run.recipe.name, run.recipe.scale, *run.manifest["overrides"]])
        drawn[f"{label}, seed {run.manifest['seed']}"] = [
            event for event in run.log.events() if event["event"] == "epoch"
        ]
    print(write(curves.draw(drawn), out))


@app.command(rich_help_panel=MAINTAINERS)
def report(
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("docs/results/tables.md"),
    results: ResultsOption = Path("results"),
) -> None:
    """Write the page with every table, the paper's numbers next to ours, and those of the benchmarks and the study."""
    from bcn.paper.measurements import write_measurements
    from bcn.paper.page import write_page
    from bcn.paper.study import write_study

    written = write_page(out, results)
    written += write_measurements(out.with_name("measurements.md"), results / "bench")
    written += write_study(out.with_name("broadcast.md"), results)
    print(*written, sep="\n")


@app.command()
def figure(
    name: Annotated[str, typer.Argument(help="Without a name, the figures are listed.")] = "",
    weights: Annotated[
        str | None,
        typer.Option(help="Shipped weights, a run's directory or a weights file, instead of the usual ones."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Selects the images that are shown.")] = 0,
    out: Annotated[Path, typer.Option(help="The directory to write into, as PNG.")] = Path("docs/results/figures"),
    results: ResultsOption = Path("results"),
) -> None:
    """Draw a figure of the paper."""
    from bcn.paper.figures import FIGURES, draw_figure
    from bcn.paper.figures.style import write

    if not name:
        for known, (about, _) in FIGURES.items():
            print(f"{known:26} {about}")
        sys.exit(0)
    print(write(draw_figure(name, weights=weights, results=results, seed=seed), out / f"{name}.png"))
