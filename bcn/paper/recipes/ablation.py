"""What the `cpu` scale of table 3 owes to each of its choices: multirn-h with one of them changed at a time."""

from dataclasses import replace

from bcn.paper.recipes.row import row
from bcn.paper.recipes.table3 import OPEN, multirn_h
from bcn.training.recipe import Recipe, Scale

COMPARED = "not an experiment of the paper, whose figures for multirn-h stand here for comparison"


@row("ablation/as-table3")
def as_table3(scale: Scale) -> Recipe:
    recipe = multirn_h(scale)
    return replace(recipe, departures=(COMPARED, *recipe.departures))


def _changed(recipe: Recipe, name: str, was: str, now: str) -> Recipe:
    """With the sentence that has `was` in it, and no longer holds, exchanged; the few images of `smoke` lack it."""
    kept = [deviation for deviation in recipe.departures if was not in deviation]
    return replace(recipe, name=f"ablation/{name}", departures=(COMPARED, *kept, now))


@row("ablation/all-questions-at-once")
def all_questions_at_once(scale: Scale) -> Recipe:
    recipe = replace(multirn_h(scale), curriculum_epochs=0)
    return _changed(recipe, "all-questions-at-once", "questions alone", "all questions from the first epoch on")


@row("ablation/larger-groups")
def larger_groups(scale: Scale) -> Recipe:
    recipe = replace(multirn_h(scale), batch_size=2 * multirn_h(scale).batch_size)
    now = OPEN[0].replace("8 images", f"{recipe.batch_size} images")
    return _changed(recipe, "larger-groups", OPEN[0], now)


@row("ablation/20-questions")
def twenty_questions(scale: Scale) -> Recipe:
    recipe = multirn_h(scale)
    recipe = replace(recipe, data=replace(recipe.data, questions="sampled"))
    return _changed(recipe, "20-questions", "all 36", "20 questions about each training image, as in the paper")


@row("ablation/last-weights")
def last_weights(scale: Scale) -> Recipe:
    recipe = multirn_h(scale)
    recipe = replace(recipe, optim=replace(recipe.optim, ema_decay=None))
    return _changed(recipe, "last-weights", "moving average", "the weights themselves are tested, not their average")


@row("ablation/steps")
def steps(scale: Scale) -> Recipe:
    """The paper's two rates, 4 to 6 as in its 50 epochs, within the epochs of the scale."""
    recipe = multirn_h(scale)
    optim = replace(recipe.optim, lr=1e-3, schedule="step-decay", milestones=(round(0.4 * recipe.epochs),), warmup=0.0)
    first = optim.milestones[0]
    now = f"{first} epochs of 0.001 and {recipe.epochs - first} of 0.0001 instead of 20 and 30"
    return _changed(replace(recipe, optim=optim), "steps", "one-cycle", now)
