"""Ours: weights to start from on images of one's own: drawn shapes and letters, questions in free English.

Things, referents and steps are supervised from the scenes, as on clevr-like-v1.
"""

from dataclasses import replace

from bcn.paper.recipes.row import Row, Rows, model_rows
from bcn.training.recipe import Auxiliary, Data, Optim, Recipe, Scale

WHOLE = Recipe(
    name="drawn/multirn-rounds",
    scale="paper",
    data=Data("drawn-v1"),
    model="drawn/multirn-rounds",
    optim=Optim("adam", 1e-3, schedule="warmup-cosine", warmup=0.05, clip_norm=10.0, ema_decay=0.999),
    batch_size=8,
    epochs=200,
    auxiliary=Auxiliary(object_epochs=5, referent_epochs=1),
    initialisation="balanced",
)


def at_scale(recipe: Recipe, scale: Scale) -> Recipe:
    """The numbers of each scale; the start is balanced: otherwise broadcasting after asking stays on its plateau."""
    if scale == "smoke":
        data = replace(recipe.data, train=8, val=4, test=4)
        auxiliary = Auxiliary(object_epochs=1, referent_epochs=1)
        return replace(recipe, scale=scale, data=data, batch_size=4, epochs=3, auxiliary=auxiliary)
    return replace(recipe, scale=scale, epochs=26) if scale == "cpu" else recipe


BASE = Row("broadcast after asking, 64 objects", WHOLE, at_scale, (), lambda recipe: {})
ROWS: Rows = model_rows("drawn", BASE, {"multirn-rounds": BASE.about})
