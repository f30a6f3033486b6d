"""Table 1: Scaled-MNIST, classification and localisation trained together (section 5.2, appendix A)."""

from dataclasses import replace

from bcn.paper.recipes.row import RELU, Row, Rows, model_rows
from bcn.training.recipe import Data, Optim, Recipe, Scale

PUBLISHED = Recipe(
    name="table1/baseline",
    scale="paper",
    data=Data("scaled-mnist-v1", split="train+val"),
    model="scaled-mnist/baseline",
    optim=Optim("sgd", 0.01, momentum=0.9, milestones=(10, 20)),
    batch_size=64,
    epochs=30,
    localise=True,
)
UNSPECIFIED = ("batch_size", "optim.momentum", "optim.weight_decay")
NOTES = {"initialisation": "PyTorch's default initialisation; the paper gives none"}


def at_scale(recipe: Recipe, scale: Scale) -> Recipe:
    """The numbers of each scale. They change amounts, epochs and schedule, never the model."""
    if scale == "smoke":
        return replace(
            recipe,
            scale=scale,
            data=replace(recipe.data, split="train", train=32, val=16, test=16),
            optim=replace(recipe.optim, milestones=()),
            batch_size=16,
            epochs=1,
        )
    if scale == "cpu":
        return replace(
            recipe,
            scale=scale,
            data=replace(recipe.data, split="train"),
            optim=replace(recipe.optim, lr=0.05, schedule="warmup-cosine", milestones=(), warmup=0.2),
            epochs=10,
        )
    return recipe


def stabilise(recipe: Recipe, scale: Scale) -> Recipe:
    """Train the deformable baseline at a higher learning rate than the paper's 7e-5, with clipped gradients."""
    if scale == "paper":
        return recipe
    return replace(recipe, optim=replace(recipe.optim, lr=0.01, clip_norm=1.0))


BASE = Row("three blocks of 24", PUBLISHED, at_scale, UNSPECIFIED, lambda recipe: NOTES)
ROWS: Rows = model_rows(
    "table1",
    BASE,
    {
        "baseline": BASE.about,
        "baseline-depth4": "four blocks of 24",
        "baseline-depth5": "five blocks of 24",
        "baseline-depth5-wide": "five blocks of 48",
        "deformable": "deformable convolutions in all three blocks",
        "dilated": "the second block with dilation 2",
        "cce": "coordinate planes before the third block",
        "skip": "the BCN's convolutions as a skip-connection, without coordinates or broadcasting",
        "cce-skip": "coordinates and skip-connection, without broadcasting",
        "bcn-average-pool": "a BCN that broadcasts means instead of maxima",
        "bcn": "a BCN between the second and the third block",
    },
)
for name in ("bcn-average-pool", "bcn"):
    ROWS[name] = ROWS[name].then(RELU)
_slow = replace(PUBLISHED.optim, lr=7e-5, milestones=())
ROWS["deformable"] = ROWS["deformable"].publish(optim=_slow).then(stabilise)
