"""`bcn recipes`, `bcn recipe`, `bcn table`, `bcn leaderboard`, `bcn plot`, `bcn figure` and `bcn report`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from bcn.cli import MAINTAINERS, app
from bcn.cli.terminal import print_entry, print_table
from bcn.cli.train import DataOption, ScaleOption, leave
from bcn.errors import BcnError
from bcn.io import use_data

ResultsOption = Annotated[Path, typer.Option(help="Where the records of finished runs are kept.")]


@app.command()
def recipes(
    table: Annotated[str | None, typer.Argument(help="Only this table's: table3.")] = None,
    scale: ScaleOption = "cpu",
) -> None:
    """List what can be trained: a recipe for each row of the paper's tables and ours."""
    from bcn.paper.tables import OTHER_RECIPES, describe_recipe, find_recipe, find_table, list_recipes

    for name in list_recipes(find_table(table).name) if table else [*list_recipes(), *OTHER_RECIPES]:
        recipe = find_recipe(name, scale)
        parts = [describe_recipe(name, scale), f"{recipe.epochs} epochs of {recipe.data.name}"]
        paper = ", ".join(f"{metric} {value:g}" for metric, value in recipe.paper)
        print_entry(name, "; ".join([*parts, *([f"paper: {paper}"] if paper else [])]))


recipe_commands = typer.Typer(help="Look at a recipe.", no_args_is_help=True)
app.add_typer(recipe_commands, name="recipe")


@recipe_commands.command("show")
def show_recipe(
    name: Annotated[str, typer.Argument(help="Such as table3/multirn-h or own; `bcn recipes` lists them.")],
    scale: ScaleOption = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print every field of a recipe, as `bcn train --set` takes it."""
    import json
    from dataclasses import asdict

    from bcn.paper.tables import describe_recipe, find_recipe
    from bcn.training.override import assignments

    recipe = find_recipe(name, scale)
    if as_json:
        print(json.dumps(asdict(recipe), indent=2))
        return
    print_entry(name, describe_recipe(name, scale))
    print(*assignments(recipe), sep="\n")


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
    data: DataOption = None,
) -> None:
    """Make a table of the paper: train the runs that are missing, then write it as markdown and CSV."""
    from bcn.paper.plan import plan_table, train_all
    from bcn.paper.render import compact, write_table
    from bcn.paper.tables import find_recipe, find_table, list_recipes
    from bcn.training.interrupts import Interrupted
    from bcn.training.progress import say

    use_data(data)
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
    paths = write_table(found, scale, results)[1]
    print_table(*compact(found, scale, results))
    say(f"written: {', '.join(map(str, paths))}")
    if failed:
        raise BcnError(f"these runs failed, see above: {', '.join(failed)}; the same command tries them again")


@app.command()
def leaderboard(
    scale: ScaleOption = "cpu",
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("docs/results/leaderboard.md"),
    results: ResultsOption = Path("results"),
) -> None:
    """Write the leaderboard of Sort-of-CLEVR v2 from the records of our rows and of models that others entered."""
    from bcn.paper.leaderboard import HEADINGS, find_entries, find_wild_entries, make_row, write_leaderboard
    from bcn.training.progress import say

    if not (results / "leaderboard").is_dir():
        raise BcnError(f"{results} has no folder leaderboard with records; give the directory that has with --results")
    entries, wild = find_entries(results, scale), find_wild_entries(results, scale)
    written = write_leaderboard(out, entries, wild)
    shown = [number for number, heading in enumerate(HEADINGS) if heading not in ("all, %", "parameters", "epochs")]
    rows = [HEADINGS, *(make_row(entry) for entry in [*entries, *wild])]
    headings, *cells = [[row[number] for number in shown] for row in rows]
    print_table(headings, cells)
    say(f"written: {', '.join(map(str, written))}")


@app.command()
def plot(
    runs: Annotated[list[Path], typer.Argument(help="Directories of runs.")],
    out: Annotated[Path, typer.Option(help="What to write: .png, .svg, or .html, a page.")] = Path("curves.png"),
) -> None:
    """Draw loss and accuracy of several runs over their epochs."""
    from bcn.io import atomic_write
    from bcn.paper.figures import curves
    from bcn.paper.figures.style import write
    from bcn.training.run import find_run

    drawn = {}
    for run in map(find_run, runs):
        label = " ".join([run.recipe.name, run.recipe.scale, *run.manifest["overrides"]])
        drawn[f"{label}, seed {run.manifest['seed']}"] = [
            event for event in run.log.events() if event["event"] == "epoch"
        ]
    if out.suffix == ".html":
        with atomic_write(out) as temporary:
            temporary.write_text(curves.render(drawn), encoding="utf-8")
        print(out)
    else:
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
    data: DataOption = None,
) -> None:
    """Draw a figure of the paper."""
    from bcn.paper.figures import FIGURES, draw_figure
    from bcn.paper.figures.style import write

    use_data(data)
    if not name:
        for known, (about, _) in FIGURES.items():
            print_entry(known, about)
        sys.exit(0)
    print(write(draw_figure(name, weights=weights, results=results, seed=seed), out / f"{name}.png"))
