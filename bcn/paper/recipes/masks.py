"""Ours: segmentation, which the paper names as future work: a U-Net on Scaled-MNIST with and without a BCN."""

from dataclasses import replace

from bcn.paper.recipes.row import LINEAR, Row, Rows, model_rows
from bcn.training.recipe import Data, Optim, Recipe, Scale

WHOLE = Recipe(
    name="masks/unet",
    scale="paper",
    data=Data("scaled-mnist-masks-v1", split="train+val"),
    model="masks/unet",
    optim=Optim("adam", 2e-3, schedule="warmup-cosine", warmup=0.2),
    batch_size=32,
    epochs=20,
)


def at_scale(recipe: Recipe, scale: Scale) -> Recipe:
    """The numbers of each scale."""
    if scale == "smoke":
        data = replace(recipe.data, split="train", train=32, val=16, test=16)
        return replace(recipe, scale=scale, data=data, batch_size=16, epochs=1)
    if scale == "cpu":
        data = replace(recipe.data, split="train", train=20_000, val=1_000, test=None)
        return replace(recipe, scale=scale, data=data, epochs=4)
    return recipe


BASE = Row("a small U-Net", WHOLE, at_scale, (), lambda recipe: {})
ROWS: Rows = model_rows(
    "masks", BASE, {"unet": BASE.about, "unet-bcn": "a small U-Net with a BCN at its narrowest map"}
)
ROWS["unet-bcn"] = ROWS["unet-bcn"].then(LINEAR)
