"""`bcn bench hours`: how long the recipes at `paper` scale would take, from measured steps."""

from collections.abc import Callable
from typing import Any

from bcn.models.cost import executed_macs, on_meta
from bcn.models.registry import image_shape
from bcn.paper.estimate import measure
from bcn.paper.tables import TABLES, find_recipe, list_recipes
from bcn.training.recipe import Recipe

GPU_FLOPS = 5e12
"""a third of the 15.7 TFLOP/s of float32 that a V100 is rated at: a guess at what such small models reach"""


def bench_hours(*, say: Callable[[str], None]) -> dict[str, Any]:
    """Every recipe of the paper's tables; a row that is the same as another table's counts there."""
    measurements: dict[str, Any] = {}
    for name in (name for table in TABLES.values() if table.published for name in list_recipes(table.name)):
        recipe = find_recipe(name, "paper")
        if recipe.name == name:
            say(name)
            measurements[name] = hours(recipe)
    return measurements


def hours(recipe: Recipe) -> dict[str, float]:
    """Seconds of a step on one thread, steps, hours, and hours on a GPU from the FLOPs."""
    estimate = measure(recipe, alone=False, synthetic=True)
    family = recipe.model.split("/")[0]
    questions = {"sort-of-clevr": 20, "clevr": 10}.get(family, 1)
    model = on_meta(recipe.model, **dict(recipe.arguments))
    macs = executed_macs(model, image_shape(recipe.model), questions=questions)
    flops = 6 * macs.total * questions * recipe.batch_size * estimate.steps  # forward, and twice as much backward
    return {
        "step_seconds": estimate.step_seconds,
        "steps": estimate.steps,
        "hours": estimate.seconds / 3600,
        "gpu_hours": flops / GPU_FLOPS / 3600,
    }
