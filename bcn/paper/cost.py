"""What the model of a recipe costs, for the columns of a table."""

from functools import cache
from typing import NamedTuple

from bcn.training.recipe import Recipe

IMAGES = {"scaled-mnist": (1, 128, 128), "stl10": (3, 96, 96), "sort-of-clevr": (3, 75, 75)}
"""the images that the models of a data set are trained on: channels, height, width"""


class Cost(NamedTuple):
    parameters: int
    """as the paper counts: with BatchNorm's statistics in classifiers, trainable ones alone with questions"""
    macs: int
    """for one question about one image, or one image where nothing is asked, in the literal form of the equations"""


def cost(recipe: Recipe) -> Cost:
    """
    >>> from bcn.paper.recipes import find_recipe
    >>> cost(find_recipe("table3/multirn-h", "cpu")).parameters
    345074
    """
    return _cost(recipe.model, recipe.arguments)


@cache
def _cost(model: str, arguments: tuple[tuple[str, str | tuple[int, ...]], ...]) -> Cost:
    from bcn.models.cost import count_parameters, on_meta, reference_macs
    from bcn.models.registry import image_shape

    built = on_meta(model, **dict(arguments))
    parameters = count_parameters(built, statistics=model.startswith(("scaled-mnist/", "stl10/")))
    return Cost(parameters, round(reference_macs(built, image_shape(model)).total))
