"""`bcn.train`: a recipe by name, or a folder of one's own, trained from Python as `bcn train` does it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bcn.data.vqa.layouts import is_own
from bcn.data.vqa.sources import OWN
from bcn.errors import BcnError
from bcn.inference.pictures import draw_pictures
from bcn.inference.shipped import locate_weights
from bcn.paper.tables import find_recipe
from bcn.training.auxiliary import count_rounds
from bcn.training.loop import train as train_recipe
from bcn.training.override import override
from bcn.training.recipe import Recipe
from bcn.training.run import Run, find_run, run_id
from bcn.training.runtime import Runtime
from bcn.training.start import Start
from bcn.training.trackers import open_watcher

SCRATCH = "none"
"""in place of weights to start from"""


def train(
    recipe: str | Path | Recipe,
    *,
    data: str | Path | None = None,
    scale: str = "cpu",
    seed: int = 0,
    start: str | Path | None = None,
    changes: Sequence[str] = (),
    runs: str | Path = "runs",
    threads: int | None = None,
    device: str | None = None,
    log: str = "none",
) -> Run:
    """Train a recipe to its end; the same call goes on with a run that was stopped, and gives a finished one back.

    `run.record()` has its metrics, `bcn.load(run.path)` its best weights.

    Args:
        recipe: its name, such as "table3/multirn-h" (see `bcn recipes`); or a folder with questions.jsonl, which is
            the recipe "own" on that folder; or a `Recipe`.
        data: where the original data lies, BCN_DATA by default.
        scale: "smoke", "cpu" or "paper".
        start: trained weights to start from, as `bcn.load` takes them; "none" for random ones (default: the recipe's).
        changes: fields of the recipe, as `--set` takes them: ["epochs=10", "optim.lr=0.001"].
        runs: the directory that holds the directories of runs.
        threads: those that the run began with by default; of a new run, all cores.
        device: such as "cuda" (default: the CPU).
        log: what shows its curves and pictures while it trains: "tensorboard", "trackio", "wandb" or "none".
    """
    if not isinstance(recipe, Recipe):
        if is_own(Path(recipe)):
            if data is not None:
                raise BcnError(f"data={data}: {recipe} is the data already, so leave data out")
            recipe, data = "own", recipe
        recipe = find_recipe(str(recipe), scale)
    chosen, applied = override(recipe, changes)
    chosen, weights = choose_start(chosen, start)
    record = train_recipe(
        chosen,
        seed=seed,
        runs=Path(runs),
        data=None if data is None else Path(data),
        threads=threads,
        runtime=Runtime(device),
        overrides=applied,
        start=weights,
        watcher=open_watcher(log, Path(runs) / run_id(chosen, seed), draw_pictures),
    )
    return find_run(Path(runs) / record["run"])


def choose_start(recipe: Recipe, given: str | Path | None) -> tuple[Recipe, Start | None]:
    """The recipe and the trained weights that it starts from, if any.

    Args:
        given: by the user. On data of one's own the model is then that of the weights; the weights that a recipe
            names by itself are left out where it was given another model.
    """
    if str(given) == SCRATCH or not (name := given or recipe.start):
        return _from_random_weights(recipe), None
    start = Start.read(*locate_weights(name))
    chosen = start.prepare(recipe)
    if chosen.model != recipe.model:
        if given is None:
            return _from_random_weights(recipe), None
        if recipe.data.name != OWN:
            raise BcnError(
                f"{recipe.name} trains {recipe.model}, and {name} are weights of {chosen.model}: start from weights of "
                "the same model"
            )
    return chosen, start


def _from_random_weights(recipe: Recipe) -> Recipe:
    """The recipe without a start; of one's own data with a balanced one where the model broadcasts after asking."""
    balanced = recipe.data.name == OWN and recipe.initialisation == "default" and count_rounds(recipe) > 0
    return replace(recipe, start="", initialisation="balanced" if balanced else recipe.initialisation)
