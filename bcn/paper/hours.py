"""`bcn bench hours`: how long the recipes at `paper` scale would take, from measured steps."""

from collections.abc import Callable
from typing import Any

from bcn.paper.estimate import measure, step_flops
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
    return {
        "step_seconds": estimate.step_seconds,
        "steps": estimate.steps,
        "hours": estimate.seconds / 3600,
        "gpu_hours": step_flops(recipe) * estimate.steps / GPU_FLOPS / 3600,
    }
