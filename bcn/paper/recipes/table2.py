"""Table 2: STL-10, classification of natural images (section 5.2, appendix A)."""

from dataclasses import replace

from bcn.paper.recipes.row import row, vary
from bcn.paper.tables import published
from bcn.training.recipe import Data, Optim, Recipe, Scale

OPEN = (
    "the paper does not give the batch size (128 at its scale here), the momentum (0.9 here), weight decay (5e-4 here) "
    "or the initialisation (PyTorch's default here)",
)


def at_scale(recipe: Recipe, scale: Scale) -> Recipe:
    """The one place with the numbers of each scale. It changes amounts, batch, epochs and schedule, never the model."""
    if scale == "smoke":
        return replace(
            recipe,
            scale=scale,
            data=replace(recipe.data, train=4, test=2),
            optim=replace(recipe.optim, milestones=()),
            batch_size=2,
            epochs=1,
            departures=(*recipe.departures, "a few images and one epoch: the figures mean nothing"),
        )
    if scale == "cpu":
        epochs, peak, batch = 60, 0.1, 64
        return replace(
            recipe,
            scale=scale,
            optim=replace(recipe.optim, lr=peak, schedule="warmup-cosine", milestones=(), warmup=0.2),
            batch_size=batch,
            epochs=epochs,
            departures=(
                *recipe.departures,
                f"{epochs} epochs in batches of {batch}, one-cycle to {peak:g}, instead of 200 epochs of falling rates",
            ),
        )
    return recipe


@row("table2/baseline")
def baseline(scale: Scale) -> Recipe:
    """Four blocks of 64. Every other row changes the model alone."""
    recipe = Recipe(
        name="table2/baseline",
        scale="paper",
        data=Data("stl10", split="train+val"),
        model="stl10/baseline",
        optim=Optim("sgd", 0.1, momentum=0.9, weight_decay=5e-4, milestones=(10, 40, 70, 100, 130, 160, 190)),
        batch_size=128,
        epochs=200,
        augment=True,
        paper=published("table2", "baseline"),
        departures=OPEN,
    )
    return at_scale(recipe, scale)


@row("table2/skip")
def skip(scale: Scale) -> Recipe:
    """The BCN's convolutions as a skip-connection."""
    return vary(baseline(scale), "table2/skip", "stl10/skip")


@row("table2/bcn")
def bcn(scale: Scale) -> Recipe:
    """The BCN between the third and the fourth block."""
    return vary(baseline(scale), "table2/bcn", "stl10/bcn")


@row("table2/resnet18")
def resnet18(scale: Scale) -> Recipe:
    """ResNet-18 with a first convolution of 3x3 and no max-pooling."""
    return vary(baseline(scale), "table2/resnet18", "stl10/resnet18")


@row("table2/resnet18-bcn")
def resnet18_bcn(scale: Scale) -> Recipe:
    """ResNet-18 with a BCN between its third and fourth stage."""
    return vary(baseline(scale), "table2/resnet18-bcn", "stl10/resnet18-bcn")
