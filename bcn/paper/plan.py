"""The runs that a table still needs: which, how long they take, and training them, one by one or in parallel."""

import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bcn.errors import did_you_mean
from bcn.io import check_writable
from bcn.paper.estimate import announce, keep_estimate, measure
from bcn.paper.records import keep, results_of
from bcn.paper.tables import Table, find_recipe, list_recipes
from bcn.training.interrupts import STOPPING, Interrupted, Stop
from bcn.training.progress import duration, say
from bcn.training.recipe import Recipe
from bcn.training.run import find_run, run_id

POLL_SECONDS = 0.2


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
        return max((event["step"] for event in find_run(directory).log.events()), default=0)


def missing(table: Table, scale: str, seeds: int, rows: Sequence[str], results: Path) -> list[Planned]:
    """The runs of some rows, or of all, that have no record; seed by seed, so that a table fills evenly."""
    names = list_recipes(table.name)
    for row in rows:
        if f"{table.name}/{row}" not in names:
            raise did_you_mean(f"row of {table.name}", row, [name.split("/")[1] for name in names])
    recipes = [find_recipe(name, scale) for name in names if not rows or name.split("/")[1] in rows]
    done = {recipe: {result.seed for result in results_of(results, recipe)[0]} for recipe in recipes}
    return [Planned(recipe, seed) for seed in range(seeds) for recipe in recipes if seed not in done[recipe]]


def plan_table(
    table: Table, scale: str, *, seeds: int, rows: Sequence[str], jobs: int, runs: Path, results: Path, synthetic: bool
) -> list[Planned]:
    """The runs that a table still needs; how long each takes is measured, kept and printed.

    Args:
        rows: of the table; empty means all
        jobs: how many runs will train in parallel
        synthetic: measure on synthetic questions where the data set is missing
    """
    planned = missing(table, scale, seeds, rows, results)
    estimates, total = {}, 0.0
    for recipe in dict.fromkeys(run.recipe for run in planned):
        say(announce(recipe))
        estimates[recipe] = measure(recipe, alone=jobs == 1, synthetic=synthetic)
        keep_estimate(results, recipe, estimates[recipe])
    for run in planned:
        estimate = estimates[run.recipe]
        left = estimate.step_seconds * (estimate.steps - run.steps_done(runs))
        total += left
        say(f"{run.name}: about {duration(left)}, {estimate.steps:,} steps of {estimate.step_seconds:.3f} s")
    if planned:
        say(f"{len(planned)} runs, about {duration(total / min(jobs, len(planned)))}")
    return planned


def train_all(planned: Sequence[Planned], *, runs: Path, results: Path, jobs: int) -> list[str]:
    """Train each run in a process of its own, keep its record, and name those that failed.

    On Ctrl-C, SIGTERM or SIGHUP the processes save their runs and end before this does.
    """
    waiting, failed = deque(planned), []
    running: dict[subprocess.Popen[bytes], Planned] = {}
    with Stop() as stop:
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    run = waiting.popleft()
                    say(f"{run.name}: {len(planned) - len(waiting)} of {len(planned)}")
                    running[_start(run, runs, alone=jobs == 1)] = run
                for process in [process for process in running if process.poll() is not None]:
                    run = running.pop(process)
                    if process.returncode - 128 in STOPPING:
                        raise Interrupted(process.returncode - 128)
                    if process.returncode:
                        failed.append(run.name)
                    else:
                        keep(run.directory(runs) / "record.json", results, run.recipe, run.seed)
                time.sleep(POLL_SECONDS)
                stop.check()
        finally:
            for process in running:
                process.terminate()
            for process in running:
                process.wait()
    return failed


def _start(run: Planned, runs: Path, *, alone: bool) -> "subprocess.Popen[bytes]":
    """A run that is alone prints to the terminal; of several, each has one thread and a log file.

    It has a session of its own, so that Ctrl-C reaches it once, through us: at a second signal it would not save.
    """
    command = [sys.executable, "-m", "bcn", "train", run.recipe.name, "--scale", run.recipe.scale]
    command += ["--seed", str(run.seed), "--runs", str(runs)]
    if alone:
        return subprocess.Popen(command, stdout=sys.stderr.fileno(), start_new_session=True)
    log = check_writable(run.directory(runs).with_suffix(".log"))
    say(f"{run.name}: its progress is in {log}")
    with open(log, "ab") as file:
        return subprocess.Popen([*command, "--threads", "1"], stdout=file, stderr=file, start_new_session=True)
