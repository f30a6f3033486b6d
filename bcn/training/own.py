"""Training on one's own images and questions: `bcn train own --data DIR` (docs/guides/own-data.md)."""

from dataclasses import replace

from bcn.training.recipe import Data, Optim, Recipe, Scale


def own_recipe(scale: Scale) -> Recipe:
    """The paper's multirn-h on the images of DIR, at the model's size, and the questions of DIR/questions.jsonl."""
    recipe = Recipe(
        name="own",
        scale="paper",
        data=Data("own"),
        model="clevr/multirn-h",
        optim=Optim("adam", 2.5e-4, weight_decay=1e-4, milestones=(200,)),
        batch_size=6,
        epochs=400,
    )
    if scale == "smoke":
        optim = replace(recipe.optim, milestones=())
        return replace(
            recipe, scale=scale, data=Data("own", train=4, val=1, test=1), optim=optim, batch_size=2, epochs=1
        )
    if scale == "cpu":
        optim = Optim(
            "adam", 1e-3, weight_decay=1e-4, schedule="warmup-cosine", warmup=0.1, clip_norm=10.0, ema_decay=0.999
        )
        return replace(recipe, scale=scale, optim=optim, batch_size=8, epochs=40)
    return recipe
