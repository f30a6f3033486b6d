"""Ours: multirn-h with a ReLU after its BCN and no augmentation, one choice of the `cpu` scale changed at a time."""

from collections.abc import Callable
from dataclasses import replace

from bcn.paper.recipes import table3
from bcn.paper.recipes.row import RELU, Row, Rows
from bcn.training.recipe import Recipe, Scale

BASE = replace(table3.ROWS["multirn-h"], at_scale=table3.at_scale).then(RELU)


def changed(name: str, about: str, change: Callable[[Recipe], Recipe]) -> Row:
    def rename(recipe: Recipe, scale: Scale) -> Recipe:
        return replace(change(recipe), name=f"ablation/{name}")

    return replace(BASE.then(rename), about=about)


def step_decay(recipe: Recipe) -> Recipe:
    """The paper's two learning rates, 4 to 6 as in its 50 epochs, within the epochs of the scale."""
    milestones = (round(0.4 * recipe.epochs),)
    optim = replace(recipe.optim, lr=1e-3, schedule="step-decay", milestones=milestones, warmup=0.0)
    return replace(recipe, optim=optim)


ROWS: Rows = {
    "base": changed("base", "a ReLU after the BCN, and no augmentation", lambda recipe: recipe),
    "no-curriculum": changed(
        "no-curriculum",
        "all questions from the first epoch on",
        lambda recipe: replace(recipe, curriculum_epochs=0),
    ),
    "batch16": changed(
        "batch16",
        "twice the batch size",
        lambda recipe: replace(recipe, batch_size=2 * recipe.batch_size),
    ),
    "20-questions": changed(
        "20-questions",
        "20 questions about each training image, as in the paper",
        lambda recipe: replace(recipe, data=replace(recipe.data, questions="sampled")),
    ),
    "no-ema": changed(
        "no-ema",
        "the last weights, without EMA",
        lambda recipe: replace(recipe, optim=replace(recipe.optim, ema_decay=None)),
    ),
    "step-decay": changed("step-decay", "step decay, as in the paper", step_decay),
}
