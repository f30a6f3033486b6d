"""The leaderboard of Sort-of-CLEVR v2: entries from records, as a page with a picture (docs/guides/benchmark.md).

An entry is a row of our recipes, or a model of somebody else whose records lie under results/leaderboard/.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any

from bcn.errors import BcnError
from bcn.io import atomic_write
from bcn.models.cost import count_parameters, on_meta, reference_macs
from bcn.models.registry import image_shape
from bcn.paper.estimate import Estimate, estimate_of
from bcn.paper.figures.style import write
from bcn.paper.recipes.leaderboard import BUDGET_MINUTES, CORRUPTIONS, NUMBERS, OPTIM, SEEDS, SEEN, protocol
from bcn.paper.recipes.wild import BUDGET_MINUTES as WILD_MINUTES
from bcn.paper.records import Result, keep, read_result, results_of
from bcn.paper.render import grid, short_macs, show
from bcn.paper.rows import Cell, cell
from bcn.paper.tables import find_recipe, find_table
from bcn.training.loop import train as train_recipe
from bcn.training.progress import duration
from bcn.training.recipe import Optim, Recipe, Scale

ARITIES = ("unary", "binary", "ternary")
INTRODUCTION = f"""# Leaderboard: Sort-of-CLEVR v2

Made by `bcn leaderboard` from the records under `results/leaderboard/`; [the protocol, and how to enter a
model](../guides/benchmark.md). Each model trains for at most {BUDGET_MINUTES} minutes of one core, on 9,800 scenes with
2 to 8 objects or on scenes that never repeat (`-stream`), from pixels or from the objects themselves (`-states`).
Numbers are percent, the mean over n seeds ± their standard deviation; a dash means that we have not run it. MACs are
for one question, in the reference implementation; a set has 12 objects. CPU time is that of the training steps; in
brackets, an estimate from a few of them.
"""
WILD = """## In the wild

The same models after more training, on varied pictures that never repeat: the table `wild`. Rows `-wild` train for at
most 150 minutes of one core, rows `-wild-hour` for 60. They are tested as all others are, so on pictures that are exact
unless said otherwise.
"""
PUBLISHED = """## Published

What others report, on data of the public generator and not on ours: six objects in every scene, 9,800 training and 200
test images, ten sampled questions of each arity about an image, and other rules for ternary questions. They name no
budget of time.
"""


@dataclass(frozen=True)
class Entry:
    """A model on the leaderboard."""

    name: str
    recipe: Recipe
    results: tuple[Result, ...]
    estimate: Estimate | None

    def accuracy(self, group: str, test_set: str = "test") -> Cell:
        """In percent, over seeds; `test_set` without "-states"."""
        name = f"{test_set}-states" if self.of_states and test_set != "test" else test_set
        return cell(None, [result.accuracy(name, group) for result in self.results])

    @property
    def of_states(self) -> bool:
        return self.recipe.data.name.endswith("-states")

    @property
    def cost(self) -> tuple[int, int]:
        """Parameters and MACs."""
        if self.results:
            return self.results[0].record["parameters"], self.results[0].record["macs"]
        model = on_meta(self.recipe.model, **dict(self.recipe.arguments))
        return count_parameters(model), round(reference_macs(model, image_shape(self.recipe.model)).total)

    @property
    def cpu_minutes(self) -> float | None:
        """Of the training steps, the mean over runs."""
        return mean(result.training_cpu_minutes for result in self.results) if self.results else None


def find_entries(results: Path, scale: str = "cpu") -> list[Entry]:
    """Our rows and those of others, the best first; those that were not run come last, in the order of the recipes."""
    entries = _own_entries("leaderboard", results, scale)
    for folder in sorted((results / "leaderboard").glob("*")):
        runs = sorted(folder.glob(f"{scale}-seed*.json"))
        if runs and folder.name not in find_table("leaderboard").rows:
            entries.append(_foreign_entry(folder.name, [read_result(path) for path in runs]))
    return _ranked(entries)


def find_wild_entries(results: Path, scale: str = "cpu") -> list[Entry]:
    """Our rows that trained on varied pictures, in the same order."""
    return _ranked(_own_entries("wild", results, scale))


def _own_entries(table: str, results: Path, scale: str) -> list[Entry]:
    recipes = {row: find_recipe(f"{table}/{row}", scale) for row in find_table(table).rows}
    return [
        Entry(row, recipe, tuple(results_of(results, recipe)[0]), estimate_of(results, recipe))
        for row, recipe in recipes.items()
    ]


def _ranked(entries: Sequence[Entry]) -> list[Entry]:
    return sorted(entries, key=lambda entry: -(entry.accuracy("all").mean or 0))


def _foreign_entry(name: str, results: Sequence[Result]) -> Entry:
    recipe = results[0].recipe
    followed = protocol(recipe.model, epochs=recipe.epochs, data=recipe.data.name, scale=recipe.scale).data
    for result in results:
        if (result.recipe.data.name, result.recipe.data.tests) != (followed.name, followed.tests):
            raise BcnError(f"leaderboard/{name} was not tested by the protocol: train it with `enter`")
    return Entry(name, recipe, tuple(results), None)


def enter(
    model: str,
    *,
    epochs: int,
    data: str = "sort-of-clevr-v2",
    optim: Optim = OPTIM,
    train: int | None = None,
    scale: Scale = "cpu",
    seeds: int = SEEDS,
    runs: Path = Path("runs"),
    results: Path = Path("results"),
) -> list[Path]:
    """Train a registered model by the protocol and keep its records, from which `bcn leaderboard` makes the page.

    Args:
        model: its name in the registry; it takes `question_dim` and `num_answers`.
        epochs: as many as fit into the budget.
        data: what it is trained on, see `protocol`.
        optim: how it is trained; by default as our rows are.
        train: images of an epoch, where the budget has no room for 9,800.
        seeds: runs, with seeds 0, 1, ...
        runs, results: where runs and records are kept.
    """
    recipe = replace(protocol(model, epochs=epochs, data=data, train=train, scale=scale), optim=optim)
    kept = []
    for seed in range(seeds):
        record = train_recipe(recipe, seed=seed, runs=runs)
        kept.append(keep(runs / record["run"] / "record.json", results, recipe, seed))
    return kept


def write_leaderboard(page: Path, entries: Sequence[Entry], wild: Sequence[Entry] = ()) -> list[Path]:
    """Write the page, and its picture into figures/ next to it where anything was run."""
    from bcn.paper.figures import leaderboard as picture

    written, parts = [page], [INTRODUCTION, grid(HEADINGS, [make_row(entry) for entry in entries]) + "\n"]
    if wild:
        parts += [WILD, grid(HEADINGS, [make_row(entry) for entry in wild]) + "\n"]
    if ran := [entry for entry in entries if entry.results]:
        written.append(write(picture.draw(ran), page.parent / "figures" / "leaderboard.png"))
        about = "accuracy against multiply-accumulates, and against the number of objects"
        parts.append(f"![{about}](figures/leaderboard.png)\n")
    if tested := [*ran, *(entry for entry in wild if entry.results)]:
        parts += [_by_objects(tested, arity) for arity in ("binary", "ternary")] + [_by_corruption(tested)]
    parts += [PUBLISHED, _published()]
    with atomic_write(page) as temporary:
        temporary.write_text("\n".join(part for part in parts if part), encoding="utf-8")
    return written


HEADINGS = ("model", "all, %", *(f"{arity}, %" for arity in ARITIES), "n", "parameters", "MACs", "epochs", "CPU time")


def make_row(entry: Entry) -> list[str]:
    """An entry as a row of the table."""
    parameters, macs = entry.cost
    metrics = [show(entry.accuracy(group)) for group in ("all", *ARITIES)]
    counts = [str(len(entry.results)), f"{parameters:,}", short_macs(macs), str(entry.recipe.epochs)]
    return [entry.name, *metrics, *counts, _time(entry)]


def _time(entry: Entry) -> str:
    if (minutes := entry.cpu_minutes) is not None:
        return duration(60 * minutes) + (", over the budget" if minutes > budget_minutes(entry.recipe) else "")
    return f"({duration(entry.estimate.seconds)})" if entry.estimate else "-"


def budget_minutes(recipe: Recipe) -> int:
    """CPU time that the training steps of a run may take."""
    return next((minutes for ending, minutes in WILD_MINUTES.items() if recipe.name.endswith(ending)), BUDGET_MINUTES)


def _by_objects(entries: Sequence[Entry], arity: str) -> str:
    rows = [[entry.name, *(show(entry.accuracy(arity, NUMBERS[n]), 1) for n in NUMBERS)] for entry in entries]
    headings = ["model", *(str(n) if n in SEEN else f"*{n}*" for n in NUMBERS)]
    title = f"## {arity.capitalize()} questions by number of objects, %"
    return f"{title}\n\n*Slanted* numbers of objects are not in training.\n\n{grid(headings, rows)}\n"


def _by_corruption(entries: Sequence[Entry]) -> str:
    seen = [entry for entry in entries if not entry.of_states]
    names = ["test", *CORRUPTIONS]
    rows = [[entry.name, *(show(entry.accuracy("binary", name), 1) for name in names)] for entry in seen]
    headings = ["model", "exact", *CORRUPTIONS.values()]
    return f"## Binary questions by corruption, %\n\n{grid(headings, rows)}\n" if seen and CORRUPTIONS else ""


def published_entries() -> list[dict[str, Any]]:
    """What others report, from leaderboard.toml."""
    text = Path(__file__).with_name("leaderboard.toml").read_text(encoding="utf-8")
    return list(tomllib.loads(text)["published"])


def _published() -> str:
    rows = [
        [
            entry["name"],
            *(f"{entry[arity][0]:.2f} ± {entry[arity][1]:.2f}" for arity in ARITIES),
            f"[{entry['source']}]({entry['url']})",
        ]
        for entry in published_entries()
    ]
    return grid(["model", *(f"{arity}, %" for arity in ARITIES), "source"], rows) + "\n"
