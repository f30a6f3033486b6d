"""Table 3 on the original public generator, which takes longer to learn and is easier to memorise.

Its scenes have objects on the middle line, where left and right cannot be exchanged: no augmentation."""

from dataclasses import replace

from bcn.paper.recipes import table3
from bcn.paper.recipes.row import LINEAR, Rows
from bcn.training.recipe import Recipe, Scale


def at_scale(recipe: Recipe, scale: Scale) -> Recipe:
    recipe = table3.scale_down(replace(recipe, data=replace(recipe.data, test=2000)), scale)
    if scale != "cpu":
        return recipe
    return replace(recipe, epochs=36, optim=replace(recipe.optim, weight_decay=1e-4))


ROWS: Rows = {
    name: replace(row.publish(name=f"table3-legacy/{name}"), at_scale=at_scale) for name, row in table3.ROWS.items()
}
for name in ("multirn", "multirn-h"):
    ROWS[name] = ROWS[name].then(LINEAR)
