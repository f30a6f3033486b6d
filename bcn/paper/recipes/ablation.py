"""What the `cpu` scale of table 3 owes to each of its choices: multirn-h with one of them changed at a time."""

from dataclasses import replace

from bcn.engine.recipe import Recipe, Scale
from bcn.paper.recipes.row import row
from bcn.paper.recipes.table3 import multirn_h

COMPARED = "not an experiment of the paper, whose figures for multirn-h stand here for comparison"


@row("ablation/as-table3")
def as_table3(scale: Scale) -> Recipe:
    recipe = multirn_h(scale)
    return replace(recipe, deviations=(COMPARED, *recipe.deviations))


def _changed(recipe: Recipe, name: str, change: str) -> Recipe:
    return replace(recipe, name=f"ablation/{name}", deviations=(COMPARED, *recipe.deviations, change))


@row("ablation/all-questions-at-once")
def all_questions_at_once(scale: Scale) -> Recipe:
    recipe = replace(multirn_h(scale), non_relational_first=0)
    return _changed(recipe, "all-questions-at-once", "relational questions from the first epoch on")


@row("ablation/larger-groups")
def larger_groups(scale: Scale) -> Recipe:
    recipe = multirn_h(scale)
    recipe = replace(recipe, batch=2 * recipe.batch)
    return _changed(recipe, "larger-groups", f"{recipe.batch} images in a step, twice as many")


@row("ablation/20-questions")
def twenty_questions(scale: Scale) -> Recipe:
    recipe = multirn_h(scale)
    recipe = replace(recipe, data=replace(recipe.data, questions="sampled"))
    return _changed(recipe, "20-questions", "20 questions about each training image, as in the paper")


@row("ablation/last-weights")
def last_weights(scale: Scale) -> Recipe:
    recipe = multirn_h(scale)
    recipe = replace(recipe, optim=replace(recipe.optim, average=None))
    return _changed(recipe, "last-weights", "the weights themselves are tested, not their average")


@row("ablation/steps")
def steps(scale: Scale) -> Recipe:
    """The paper's two rates, 4 to 6 as in its 50 epochs, within the epochs of the scale."""
    recipe = multirn_h(scale)
    optim = replace(recipe.optim, lr=1e-3, schedule="steps", milestones=(round(0.4 * recipe.epochs),), warmup=0.0)
    return _changed(
        replace(recipe, optim=optim), "steps", "the paper's rates, 0.001 and then 0.0001, instead of one-cycle"
    )
