"""The runs that a table still needs: which, how long, and training them one after another or side by side."""

import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

from bcn.errors import did_you_mean
from bcn.paper.recipes import find_recipe, list_recipes
from bcn.paper.records import Estimate, keep, results_of
from bcn.paper.tables import Table
from bcn.training.interrupts import Interrupted
from bcn.training.progress import say
from bcn.training.recipe import Recipe
from bcn.training.run import find_run, run_id

POLL_SECONDS = 0.2
ENOUGH_SECONDS = 5.0
"""of measuring steps"""


@dataclass(frozen=True)
class Planned:
    recipe: Recipe
    seed: int

    @property
    def name(self) -> str:
        return f"{self.recipe.name}, seed {self.seed}"

    def directory(self, runs: Path) -> Path:
        return runs / run_id(self.recipe, self.seed)

    def steps_done(self, runs: Path) -> int:
        """How far a run came that was stopped."""
        directory = self.directory(runs)
        if not (directory / "manifest.json").exists():
            return 0
        return max((event["step"] for event in find_run(directory).events()), default=0)


def missing(table: Table, scale: str, seeds: int, rows: Sequence[str], results: Path) -> list[Planned]:
    """The runs of some rows, or of all, that have no record: seed by seed, so that a table fills evenly."""
    names = list_recipes(table.name)
    for row in rows:
        if f"{table.name}/{row}" not in names:
            raise did_you_mean(f"row of {table.name}", row, [name.split("/")[1] for name in names])
    recipes = [find_recipe(name, scale) for name in names if not rows or name.split("/")[1] in rows]
    done = {recipe: {result.seed for result in results_of(results, recipe)[0]} for recipe in recipes}
    return [Planned(recipe, seed) for seed in range(seeds) for recipe in recipes if seed not in done[recipe]]


def measure(recipe: Recipe, *, alone: bool, stand_in: bool = False) -> Estimate:
    """How long a run takes, from real steps with the threads that it will have.

    With `stand_in`, on made-up images and questions where those of CLEVR, or like CLEVR's, are not here; there is
    nothing then to be taught by, and every step is taken for one that answers.
    """
    import numpy as np
    import torch

    from bcn.data.clevr_like.synthetic import synthetic_questions
    from bcn.data.dataset import Dataset
    from bcn.data.registry import missing_files
    from bcn.data.vqa.sources import SOURCES
    from bcn.training.auxiliary import open_supervision
    from bcn.training.distributed import Ranks
    from bcn.training.environment import default_threads
    from bcn.training.interrupts import Stop
    from bcn.training.loop import Trainer
    from bcn.training.splits import Splits, open_for

    data = recipe.data
    torch.set_num_threads(default_threads() if alone else 1)
    if stand_in and data.name in SOURCES and SOURCES[data.name].train_images and missing_files(data.name):
        say(f"{data.name} is not here: measured on made-up images and questions")
        recipe = replace(recipe, auxiliary=None)
        dataset: Dataset = synthetic_questions(data.name, images=data.train)
    else:
        dataset = open_for(recipe.model, data.name, data.split, images=data.train, questions=data.questions)
    dataset, objects = open_supervision(recipe, dataset)
    splits = Splits(dataset, None, dataset, {}, objects)
    trainer = Trainer(recipe, 0, splits, ranks=Ranks(), stop=Stop())
    at, seconds = trainer.state.position, 0.0
    for stage in trainer.stages:
        taken = list[float]()
        while len(taken) < 4 and sum(taken) < ENOUGH_SECONDS:
            began = time.perf_counter()
            batch = trainer.load(np.arange(min(recipe.batch_size, len(stage.data))))
            trainer.step(stage.loss, batch, answers=int((batch.answer >= 0).sum()))
            taken.append(time.perf_counter() - began)
        seconds += min(taken) * stage.epochs / recipe.epochs
        at.epoch += stage.epochs
    return Estimate(seconds, trainer.total, torch.get_num_threads())


def train_all(planned: Sequence[Planned], *, runs: Path, results: Path, jobs: int) -> list[str]:
    """Train each run in a process of its own, keep its record, and name those that failed.

    On Ctrl-C or SIGTERM the processes save their runs and end before this does.
    """
    waiting, failed = deque(planned), []
    running: dict[subprocess.Popen[bytes], Planned] = {}
    before = {number: signal.signal(number, _leave) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                run = waiting.popleft()
                say(f"{run.name}: {len(planned) - len(waiting)} of {len(planned)}")
                running[_start(run, runs, alone=jobs == 1)] = run
            for process in [process for process in running if process.poll() is not None]:
                run = running.pop(process)
                if process.returncode in (130, 143):
                    raise Interrupted(process.returncode - 128)
                if process.returncode:
                    failed.append(run.name)
                else:
                    keep(run.directory(runs) / "record.json", results, run.recipe, run.seed)
            time.sleep(POLL_SECONDS)
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait()
        for number, handler in before.items():
            signal.signal(number, handler)
    return failed


def _start(run: Planned, runs: Path, *, alone: bool) -> "subprocess.Popen[bytes]":
    """One run that speaks on the terminal; of several, each has one thread and speaks into a file of its own.

    It has a session of its own, so that Ctrl-C reaches it once, through us: at a second signal it would not save.
    """
    command = [sys.executable, "-m", "bcn", "train", run.recipe.name, "--scale", run.recipe.scale]
    command += ["--seed", str(run.seed), "--runs", str(runs)]
    if alone:
        return subprocess.Popen(command, stdout=sys.stderr.fileno(), start_new_session=True)
    log = run.directory(runs).with_suffix(".log")
    log.parent.mkdir(parents=True, exist_ok=True)
    say(f"{run.name}: its progress is in {log}")
    with open(log, "ab") as file:
        return subprocess.Popen([*command, "--threads", "1"], stdout=file, stderr=file, start_new_session=True)


def _leave(number: int, frame: FrameType | None) -> None:
    raise Interrupted(number)
