"""Training on one's own images and questions: `bcn train own --data DIR` (docs/guides/own-data.md)."""

from dataclasses import replace

from bcn.training.recipe import Data, Optim, Recipe, Scale

BLIND_EPOCHS = 4
"""a blind model is trained for one epoch where the model itself is trained for so many: it learns in few, or nothing"""


def own_recipe(scale: Scale) -> Recipe:
    """Your own images and questions: multirn-rounds, from the shipped weights for drawn shapes and letters.

    A thousand images are too few to learn relations from: what is left of what has to be known before.
    """
    recipe = Recipe(
        name="own",
        scale="paper",
        data=Data("own"),
        model="drawn/multirn-rounds",
        optim=Optim("adam", 2.5e-4, weight_decay=1e-4, milestones=(200,)),
        batch_size=6,
        epochs=400,
        start="drawn/multirn-rounds",
    )
    if scale == "smoke":
        optim = replace(recipe.optim, milestones=())
        return replace(
            recipe, scale=scale, data=Data("own", train=4, val=1, test=1), optim=optim, batch_size=2, epochs=1, start=""
        )
    if scale == "cpu":
        optim = Optim(
            "adam", 5e-4, weight_decay=1e-4, schedule="warmup-cosine", warmup=0.1, clip_norm=10.0, ema_decay=0.999
        )
        return replace(recipe, scale=scale, optim=optim, batch_size=8, epochs=20, augment=True)
    return recipe


def blind_recipe(recipe: Recipe) -> Recipe:
    """A model that sees the questions alone, trained on the same data: what the images are worth is beyond it."""
    return Recipe(
        name="blind",
        scale=recipe.scale,
        data=recipe.data,
        model="clevr/lstm",
        optim=Optim("adam", 1e-3, weight_decay=1e-4, schedule="warmup-cosine", warmup=0.1, clip_norm=10.0),
        batch_size=recipe.batch_size,
        epochs=max(1, recipe.epochs // BLIND_EPOCHS),
    )
