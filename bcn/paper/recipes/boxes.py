"""Ours: detection, which the paper names as future work: a CenterNet on CLEVR-like objects with and without a BCN."""

from dataclasses import replace

from bcn.paper.recipes.row import LINEAR, Row, Rows, model_rows
from bcn.training.recipe import Data, Optim, Recipe, Scale

WHOLE = Recipe(
    name="boxes/centre-net",
    scale="paper",
    data=Data("clevr-boxes-v1"),
    model="boxes/centre-net",
    optim=Optim("adam", 2e-3, schedule="warmup-cosine", warmup=0.1),
    batch_size=16,
    epochs=40,
)


def at_scale(recipe: Recipe, scale: Scale) -> Recipe:
    """The numbers of each scale."""
    if scale == "smoke":
        return replace(recipe, scale=scale, data=replace(recipe.data, train=8, val=4, test=4), batch_size=4, epochs=1)
    return replace(recipe, scale=scale, epochs=8) if scale == "cpu" else recipe


BASE = Row("a small CenterNet", WHOLE, at_scale, (), lambda recipe: {})
ROWS: Rows = model_rows(
    "boxes", BASE, {"centre-net": BASE.about, "centre-net-bcn": "a small CenterNet with a BCN before its last block"}
)
ROWS["centre-net-bcn"] = ROWS["centre-net-bcn"].then(LINEAR)
