"""`bcn bench hours`: how long the recipes at `paper` scale would take, from measured steps."""

from collections.abc import Callable
from typing import Any

from bcn.models.cost import executed_macs, on_meta
from bcn.models.registry import image_shape
from bcn.paper.plan import measure
from bcn.paper.recipes import find_recipe, list_recipes
from bcn.training.recipe import Recipe

GPU_FLOPS = 5e12
"""a third of the 15.7 teraflops of 32-bit floats that a V100 is rated at: a guess at what such small models reach"""
TABLES = ("table1", "table2", "table3", "table4", "table5-scaled-mnist", "table5-sort-of-clevr", "bcn-size")


def bench_hours(*, say: Callable[[str], None]) -> dict[str, Any]:
    """Every recipe of the paper's tables; a row that is one and the same as another table's counts there."""
    figures: dict[str, Any] = {}
    for name in (name for table in TABLES for name in list_recipes(table)):
        recipe = find_recipe(name, "paper")
        if recipe.name == name:
            say(name)
            figures[name] = hours(recipe)
    return figures


def hours(recipe: Recipe) -> dict[str, float]:
    """Seconds of a step on one thread here, steps, hours, and hours on a GPU from the operations."""
    estimate = measure(recipe, alone=False, stand_in=True)
    family = recipe.model.split("/")[0]
    asked = {"sort-of-clevr": 20, "clevr": 10}.get(family, 1)
    macs = executed_macs(on_meta(recipe.model, **dict(recipe.arguments)), image_shape(recipe.model), questions=asked)
    operations = 6 * macs.total * asked * recipe.batch_size * estimate.steps  # forward, and twice as much back
    return {
        "step_seconds": estimate.step_seconds,
        "steps": estimate.steps,
        "hours": estimate.seconds / 3600,
        "gpu_hours": operations / GPU_FLOPS / 3600,
    }
