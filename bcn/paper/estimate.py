"""How long a run would take: measured from a few training steps, and kept next to the records."""

import time
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path

from bcn.errors import BcnError
from bcn.io import read_json, write_json
from bcn.models.cost import executed_macs, on_meta
from bcn.models.registry import image_shape
from bcn.training.environment import commit, machine
from bcn.training.progress import duration, say
from bcn.training.recipe import Recipe, fingerprint

ENOUGH_SECONDS = 5.0
"""of measuring steps"""
CPU_FLOPS = 3e10
"""a low guess at what one core reaches"""
LONG_STEP = 20.0
"""seconds"""


@dataclass(frozen=True)
class Estimate:
    """How long a run would take, from measured steps."""

    step_seconds: float
    steps: int
    threads: int

    @property
    def seconds(self) -> float:
        return self.step_seconds * self.steps


def estimate_path(results: Path, recipe: Recipe) -> Path:
    return results / recipe.name / f"{recipe.scale}-estimate.json"


def keep_estimate(results: Path, recipe: Recipe, estimate: Estimate) -> None:
    where = {"commit": commit(), "machine": machine(), "time": datetime.now(UTC).isoformat(timespec="seconds")}
    write_json(estimate_path(results, recipe), {"run": fingerprint(recipe), **asdict(estimate), **where})


def estimate_of(results: Path, recipe: Recipe) -> Estimate | None:
    """What was measured for this very recipe."""
    path, remedy = estimate_path(results, recipe), "remove it and run `bcn table` with --plan"
    kept = read_json(path, remedy) if path.exists() else {}
    try:
        if kept.get("run") != fingerprint(recipe):
            return None
        return Estimate(*(kept[field.name] for field in fields(Estimate)))
    except (LookupError, AttributeError) as error:
        raise BcnError(f"{path} is not an estimate ({error}): {remedy}") from error


def step_flops(recipe: Recipe) -> float:
    """Floating-point operations of a training step: forward, and twice as much backward."""
    questions = {"sort-of-clevr": 36 if recipe.data.questions == "all" else 20, "clevr": 10}
    asked = questions.get(recipe.model.split("/")[0], 1)
    model = on_meta(recipe.model, **dict(recipe.arguments))
    return 6 * executed_macs(model, image_shape(recipe.model), questions=asked).total * asked * recipe.batch_size


def announce(recipe: Recipe) -> str:
    """What is said before a recipe is measured: a step of some takes minutes."""
    seconds = step_flops(recipe) / CPU_FLOPS
    if seconds < LONG_STEP:
        return f"{recipe.name}: measuring a few steps"
    return f"{recipe.name}: measuring one step, which may take {duration(seconds)}; --rows chooses other rows"


def measure(recipe: Recipe, *, alone: bool, synthetic: bool = False) -> Estimate:
    """How long a run takes, from real steps.

    Args:
        alone: with all threads, as a run that is alone on the machine; else with one
        synthetic: where the data set is missing, measure on synthetic questions, without auxiliary supervision
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
    if synthetic and data.name in SOURCES and SOURCES[data.name].train_images and missing_files(data.name):
        say(f"{data.name} is not here: measured on synthetic images and questions")
        recipe = replace(recipe, auxiliary=None)
        dataset: Dataset = synthetic_questions(data.name, images=data.train)
    else:
        dataset = open_for(recipe.model, data.name, data.split, images=data.train, questions=data.questions)
    dataset, objects = open_supervision(recipe, dataset)
    # The CPU time of one thread does not depend on what else runs on the machine.
    clock = time.perf_counter if alone else time.process_time
    splits = Splits(dataset, None, dataset, {}, objects)
    trainer = Trainer(recipe, 0, splits, ranks=Ranks(), stop=Stop())
    position, seconds = trainer.state.position, 0.0
    for stage in trainer.stages:
        steps = list[float]()
        while len(steps) < 4 and sum(steps) < ENOUGH_SECONDS:
            began = clock()
            batch = trainer.load(np.arange(min(recipe.batch_size, len(stage.data))))
            trainer.step(stage.loss, batch, answers=int((batch.answer >= 0).sum()))
            steps.append(clock() - began)
        seconds += min(steps) * stage.epochs / recipe.epochs
        position.epoch += stage.epochs
    return Estimate(seconds, trainer.total, torch.get_num_threads())
