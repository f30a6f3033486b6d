"""The paper's figures and ours: drawn from the layers themselves, from trained weights, or from records of runs."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bcn.data.registry import open_dataset
from bcn.errors import BcnError, did_you_mean
from bcn.inference.reasoner import load
from bcn.paper.figures import (
    ablation,
    accuracy_cost,
    activation,
    blocks,
    clevr_side_by_side,
    coordinates,
    deflection,
    deformation,
    misclassified,
    scenes,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Options:
    """What a figure may be drawn from; each takes what it needs."""

    results: Path
    """the directory of records"""
    weights: str | Path | None = None
    """weights other than the usual ones"""
    seed: int = 0


@dataclass(frozen=True)
class FromWeights:
    """A figure of what a trained model does with images of a test split."""

    draw: Callable[..., "Figure"]
    weights: str
    """shown unless other weights for the same images are given"""
    data: str

    def __call__(self, options: Options) -> "Figure":
        reasoner, family = load(options.weights or self.weights), self.weights.split("/")[0]
        if reasoner.family != family:
            model = reasoner.description["model"]
            raise BcnError(f"this figure shows a {family} model, {options.weights} has {model}: give other weights")
        return self.draw(reasoner.model, open_dataset(self.data, "test"), seed=options.seed)


FIGURES: dict[str, tuple[str, Callable[[Options], "Figure"]]] = {
    "coordinate-planes": (
        "figure 2: the coordinate planes of a map twice as wide as high",
        lambda options: coordinates.draw(),
    ),
    "deflection": (
        "figure 5: random convolutions over three coordinate systems",
        lambda options: deflection.draw(seed=options.seed),
    ),
    "activation-scaled-mnist": (
        "figures 4 and 7: where the BCN's maxima lie, Scaled-MNIST",
        FromWeights(activation.draw, "scaled-mnist/bcn", "scaled-mnist-v1"),
    ),
    "activation-stl10": (
        "figures 4 and 7: where the BCN's maxima lie, STL-10",
        FromWeights(activation.draw, "stl10/bcn", "stl10"),
    ),
    "activation-sort-of-clevr": (
        "figures 4 and 8: where the BCN's maxima lie, Sort-of-CLEVR",
        FromWeights(activation.draw, "sort-of-clevr/multirn-h", "sort-of-clevr-v1"),
    ),
    "activation-clevr": (
        "figures 4 and 8: where the BCN's maxima lie, CLEVR-like scenes",
        FromWeights(activation.draw, "clevr/multirn-h", "clevr-like-v1"),
    ),
    "misclassified": (
        "figure 6: MoreScaled digits rotated by up to 45 degrees, by a model that was also trained to localise",
        FromWeights(misclassified.draw, "scaled-mnist/bcn", "more-scaled-mnist-45-v1"),
    ),
    "clevr-like": (
        "scenes of clevr-like-v1, with a question about each",
        lambda options: scenes.draw(seed=options.seed),
    ),
    "clevr-side-by-side": (
        "original CLEVR images above our renderings of the same scenes",
        lambda options: clevr_side_by_side.draw(),
    ),
    "deformation": (
        "appendix table 1: accuracy on deformations that are not in the training set",
        lambda options: deformation.draw(options.results),
    ),
    "accuracy-cost": (
        "accuracy against multiply-accumulates for the models of table 3",
        lambda options: accuracy_cost.draw(options.results),
    ),
    "blocks": (
        "other blocks in the place of the BCN, with as many parameters",
        lambda options: blocks.draw(options.results),
    ),
    "ablation": (
        "table 3's multirn-h at cpu scale with one choice changed at a time",
        lambda options: ablation.draw(options.results),
    ),
}
"""every figure: what it shows, and how it is drawn"""


def draw_figure(name: str, *, results: Path, weights: str | Path | None = None, seed: int = 0) -> "Figure":
    if name not in FIGURES:
        raise did_you_mean("figure", name, FIGURES)
    _, draw = FIGURES[name]
    return draw(Options(results, weights, seed))
