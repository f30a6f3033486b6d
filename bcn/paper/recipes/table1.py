"""Table 1: Scaled-MNIST, classification and localisation trained together (section 5.2, appendix A)."""

from dataclasses import replace

from bcn.paper.recipes.row import row, vary
from bcn.paper.tables import published
from bcn.training.recipe import Data, Optim, Recipe, Scale

OPEN = (
    "the paper does not give the batch size (64 here), the momentum (0.9 here), weight decay (none here) "
    "or the initialisation (PyTorch's default here)",
)
"""what the paper leaves open, at every scale"""


def at_scale(recipe: Recipe, scale: Scale) -> Recipe:
    """The one place with the numbers of each scale. It changes amounts, batch, epochs and schedule, never the model."""
    if scale == "smoke":
        return replace(
            recipe,
            scale=scale,
            data=replace(recipe.data, split="train", train=32, val=16, test=16),
            optim=replace(recipe.optim, milestones=()),
            batch_size=16,
            epochs=1,
            departures=(*recipe.departures, "a few images and one epoch: the figures mean nothing"),
        )
    if scale == "cpu":
        epochs, peak, batch = 10, 0.05, 64
        return replace(
            recipe,
            scale=scale,
            data=replace(recipe.data, split="train"),
            optim=replace(recipe.optim, lr=peak, schedule="warmup-cosine", milestones=(), warmup=0.2),
            batch_size=batch,
            epochs=epochs,
            departures=(
                *recipe.departures,
                "55,000 digits to train on and 5,000 to choose the best epoch by, instead of 60,000 and the last epoch",
                f"{epochs} epochs in batches of {batch}, one-cycle to {peak:g}, instead of 30 epochs of falling rates",
            ),
        )
    return recipe


@row("table1/baseline")
def baseline(scale: Scale) -> Recipe:
    """Three blocks of 24. Every other row changes the model alone."""
    recipe = Recipe(
        name="table1/baseline",
        scale="paper",
        data=Data("scaled-mnist-v1", split="train+val"),
        model="scaled-mnist/baseline",
        optim=Optim("sgd", 0.01, momentum=0.9, milestones=(10, 20)),
        batch_size=64,
        epochs=30,
        localise=True,
        paper=published("table1", "baseline"),
        departures=OPEN,
    )
    return at_scale(recipe, scale)


@row("table1/baseline-depth4")
def baseline_depth4(scale: Scale) -> Recipe:
    """Four blocks of 24."""
    return vary(baseline(scale), "table1/baseline-depth4", "scaled-mnist/baseline-depth4")


@row("table1/baseline-depth5")
def baseline_depth5(scale: Scale) -> Recipe:
    """Five blocks of 24."""
    return vary(baseline(scale), "table1/baseline-depth5", "scaled-mnist/baseline-depth5")


@row("table1/baseline-depth5-wide")
def baseline_depth5_wide(scale: Scale) -> Recipe:
    """Five blocks of 48."""
    return vary(baseline(scale), "table1/baseline-depth5-wide", "scaled-mnist/baseline-depth5-wide")


@row("table1/deformable")
def deformable(scale: Scale) -> Recipe:
    """Deformable convolutions in all three blocks; the paper needed a rate of its own, 7e-5."""
    recipe = vary(baseline(scale), "table1/deformable", "scaled-mnist/deformable")
    if scale == "paper":
        return replace(recipe, optim=replace(recipe.optim, lr=7e-5, milestones=()))
    peak, clip = 0.01, 1.0
    return replace(
        recipe,
        optim=replace(recipe.optim, lr=peak, clip_norm=clip),
        departures=(*recipe.departures, f"a rate of {peak:g} and gradients clipped to {clip:g}, instead of 7e-5"),
    )


@row("table1/dilated")
def dilated(scale: Scale) -> Recipe:
    """The second block with dilation 2."""
    return vary(baseline(scale), "table1/dilated", "scaled-mnist/dilated")


@row("table1/cce")
def cce(scale: Scale) -> Recipe:
    """Coordinate planes before the third block."""
    return vary(baseline(scale), "table1/cce", "scaled-mnist/cce")


@row("table1/skip")
def skip(scale: Scale) -> Recipe:
    """The BCN's convolutions as a skip-connection, without coordinates or broadcasting."""
    return vary(baseline(scale), "table1/skip", "scaled-mnist/skip")


@row("table1/cce-skip")
def cce_skip(scale: Scale) -> Recipe:
    """Coordinates and skip-connection, without broadcasting."""
    return vary(baseline(scale), "table1/cce-skip", "scaled-mnist/cce-skip")


@row("table1/bcn-average-pool")
def bcn_average_pool(scale: Scale) -> Recipe:
    """A BCN that broadcasts means instead of maxima."""
    return vary(baseline(scale), "table1/bcn-average-pool", "scaled-mnist/bcn-average-pool")


@row("table1/bcn")
def bcn(scale: Scale) -> Recipe:
    """The BCN between the second and the third block."""
    return vary(baseline(scale), "table1/bcn", "scaled-mnist/bcn")
