"""Appendix table 1: trained on Scaled-MNIST with the classification loss alone, tested on deformed digits."""

from dataclasses import replace

from bcn.paper.recipes import table1
from bcn.paper.recipes.row import Row, Rows
from bcn.training.recipe import Recipe, Scale

TESTS = ("more-scaled-mnist-v1", "more-scaled-mnist-10-v1", "more-scaled-mnist-45-v1", "affine-mnist-v1")
NOTES = {
    "loss": "the classification loss alone, as in the paper; in table 1 also localisation, so metrics on the same test "
    "set differ",
    "affNIST": "`affine-mnist-v1` is made from MNIST with affNIST's published ranges; affNIST could not be had",
}


def replace_affnist(recipe: Recipe, scale: Scale) -> Recipe:
    return replace(recipe, data=replace(recipe.data, tests=TESTS))


def classify_alone(row: Row) -> Row:
    name = row.published.name.replace("table1/", "deformation/")
    data = replace(row.published.data, tests=(*TESTS[:-1], "affnist"))
    row = row.publish(name=name, data=data, localise=False).then(replace_affnist)
    return replace(row, notes=lambda recipe: table1.NOTES | NOTES)


ROWS: Rows = {
    name: classify_alone(table1.ROWS[name])
    for name in (
        *("baseline", "baseline-depth4", "baseline-depth5", "baseline-depth5-wide"),
        *("deformable", "dilated", "bcn"),
    )
}
