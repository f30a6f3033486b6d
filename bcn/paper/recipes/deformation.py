"""Appendix table 1: trained on Scaled-MNIST with the classification loss alone, tested on what it has never seen."""

from dataclasses import replace

from bcn.paper.recipes import table1
from bcn.paper.recipes.row import Row, row
from bcn.paper.tables import published
from bcn.training.recipe import Recipe, Scale

TESTS = ("more-scaled-mnist-v1", "more-scaled-mnist-10-v1", "more-scaled-mnist-45-v1", "affine-mnist-v1")
ALONE = (
    "trained to tell digits alone, as in the paper; in table 1 also to find them, with other figures for the same set"
)
AFFINE = "affine-mnist-v1, made from MNIST with affNIST's published ranges, stands in affNIST's column"


def classification_alone(of: Row, name: str) -> Row:
    def recipe(scale: Scale) -> Recipe:
        base = of(scale)
        return replace(
            base,
            name=name,
            data=replace(base.data, tests=TESTS),
            localise=False,
            paper=published(*name.split("/")),
            departures=(*base.departures, ALONE, AFFINE),
        )

    return recipe


for _name, _of in {
    "deformation/baseline": table1.baseline,
    "deformation/baseline-depth4": table1.baseline_depth4,
    "deformation/baseline-depth5": table1.baseline_depth5,
    "deformation/baseline-depth5-wide": table1.baseline_depth5_wide,
    "deformation/deformable": table1.deformable,
    "deformation/dilated": table1.dilated,
    "deformation/bcn": table1.bcn,
}.items():
    row(_name)(classification_alone(_of, _name))
