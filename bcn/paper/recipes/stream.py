"""Ours: table 3's multirn-h on scenes that never repeat."""

from dataclasses import replace

from bcn.data.sort_of_clevr import FEWER_OBJECTS
from bcn.paper.recipes import table3
from bcn.paper.recipes.row import Rows
from bcn.training.recipe import Optim, Recipe, Scale


def on_fresh_scenes(recipe: Recipe, scale: Scale) -> Recipe:
    """Tested on sort-of-clevr-v1, and on scenes with fewer objects than any in training."""
    epochs = {"smoke": recipe.epochs, "cpu": 60, "paper": 200}[scale]
    return replace(
        recipe,
        name="stream/multirn-h-stream",
        data=replace(recipe.data, name="sort-of-clevr-stream", questions="all", tests=tuple(FEWER_OBJECTS.values())),
        optim=Optim("adam", 1.5e-3, schedule="warmup-cosine", warmup=0.1, ema_decay=0.999),
        epochs=epochs,
        curriculum_epochs=min(3, epochs - 1),
        augment=False,
    )


BASE = table3.ROWS["multirn-h"]
NOTES = table3.NOTES | {
    "generator": "`sort-of-clevr-stream` has the rules of `sort-of-clevr-v1`, and 9,800 new scenes in each epoch"
}
ROWS: Rows = {
    "multirn-h-stream": replace(
        BASE.then(on_fresh_scenes),
        about="equation 4 with 100 objects, scenes that never repeat",
        notes=lambda recipe: NOTES,
    )
}
