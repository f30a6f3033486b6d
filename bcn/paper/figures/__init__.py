"""Figures, the paper's and ours: drawn from the layers themselves, from trained weights, or from records of runs."""

from pathlib import Path
from typing import TYPE_CHECKING

from bcn.errors import BcnError, did_you_mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES = {
    "coordinate-planes": "figure 2: the coordinate planes of a 2:1 map",
    "deflection": "figure 5: random convolutions over three coordinate systems",
    "activation-scaled-mnist": "figures 4 and 7: from where a BCN takes what it broadcasts of digits",
    "activation-stl10": "figures 4 and 7: of photographs",
    "activation-sort-of-clevr": "figures 4 and 8: of scenes",
    "activation-clevr": "figures 4 and 8: of scenes like CLEVR's",
    "misclassified": "figure 6: MoreScaled digits turned by up to 45 degrees, by a model that was also taught places",
    "clevr-like": "scenes of clevr-like-v1, with a question about each",
    "clevr-beside": "original images of CLEVR above our renderings of their scenes",
    "deformation": "appendix table 1: digits deformed as none in training were",
    "accuracy-cost": "accuracy against multiply-accumulates for the models of table 3",
    "ablation": "what each choice of the cpu scale of table 3 is worth",
}
WITH_WEIGHTS = {
    "activation-scaled-mnist": ("scaled-mnist/bcn", "scaled-mnist-v1"),
    "activation-stl10": ("stl10/bcn", "stl10"),
    "activation-sort-of-clevr": ("sort-of-clevr/multirn-h", "sort-of-clevr-v1"),
    "activation-clevr": ("clevr/multirn-h", "clevr-like-v1"),
    "misclassified": ("scaled-mnist/bcn", "more-scaled-mnist-45-v1"),
}
"""the weights that a figure shows unless others of their family are given, and the data set of its images"""


def draw_figure(name: str, *, weights: str | Path | None, results: Path, seed: int = 0) -> "Figure":
    """Draw a figure by its name."""
    from bcn.paper.figures import ablation, accuracy_cost, coordinates, deflection, deformation, scenes
    from bcn.paper.figures import clevr_side_by_side as beside

    if name not in FIGURES:
        raise did_you_mean("figure", name, FIGURES)
    if name in WITH_WEIGHTS:
        return _draw_with_weights(name, weights, seed)
    if name == "coordinate-planes":
        return coordinates.draw()
    if name == "deflection":
        return deflection.draw(seed=seed)
    if name == "clevr-like":
        return scenes.draw(seed=seed)
    if name == "clevr-beside":
        return beside.draw()
    if name == "deformation":
        return deformation.draw(results)
    if name == "ablation":
        return ablation.draw(results)
    return accuracy_cost.draw(results)


def _draw_with_weights(name: str, weights: str | Path | None, seed: int) -> "Figure":
    from bcn.data.registry import open_dataset
    from bcn.inference.reasoner import load
    from bcn.paper.figures import activation, misclassified

    usual, dataset = WITH_WEIGHTS[name]
    reasoner, family = load(weights or usual), usual.split("/")[0]
    if reasoner.family != family:
        held = reasoner.description["model"]
        raise BcnError(f"{name} shows a {family} model, and {weights} holds {held}: give other weights")
    draw = misclassified.draw if name == "misclassified" else activation.draw
    return draw(reasoner.model, open_dataset(dataset, "test"), seed=seed)
