"""Table 2: STL-10, classification of natural images (section 5.2, appendix A)."""

from dataclasses import replace

from bcn.paper.recipes.row import RELU, Row, Rows, model_rows
from bcn.training.recipe import Data, Optim, Recipe, Scale

PUBLISHED = Recipe(
    name="table2/baseline",
    scale="paper",
    data=Data("stl10", split="train+val"),
    model="stl10/baseline",
    optim=Optim("sgd", 0.1, momentum=0.9, weight_decay=5e-4, milestones=(10, 40, 70, 100, 130, 160, 190)),
    batch_size=128,
    epochs=200,
    augment=True,
)
UNSPECIFIED = ("batch_size", "optim.momentum", "optim.weight_decay")
NOTES = {"initialisation": "PyTorch's default initialisation; the paper gives none"}


def at_scale(recipe: Recipe, scale: Scale) -> Recipe:
    """The numbers of each scale. They change amounts, batch size, epochs and schedule, never the model."""
    if scale == "smoke":
        return replace(
            recipe,
            scale=scale,
            data=replace(recipe.data, train=4, test=2),
            optim=replace(recipe.optim, milestones=()),
            batch_size=2,
            epochs=1,
        )
    if scale == "cpu":
        return replace(
            recipe,
            scale=scale,
            optim=replace(recipe.optim, lr=0.1, schedule="warmup-cosine", milestones=(), warmup=0.2),
            batch_size=64,
            epochs=60,
        )
    return recipe


BASE = Row("four blocks of 64", PUBLISHED, at_scale, UNSPECIFIED, lambda recipe: NOTES)
ROWS: Rows = model_rows(
    "table2",
    BASE,
    {
        "baseline": BASE.about,
        "skip": "the BCN's convolutions as a skip-connection",
        "bcn": "a BCN between the third and the fourth block",
        "resnet18": "ResNet-18 with a first convolution of 3x3 and no max-pooling",
        "resnet18-bcn": "ResNet-18 with a BCN between its third and fourth stage",
    },
)
for name in ("bcn", "resnet18-bcn"):
    ROWS[name] = ROWS[name].then(RELU)
