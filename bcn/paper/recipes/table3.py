"""Table 3: Sort-of-CLEVR (section 5.3, appendix A), on sort-of-clevr-v1."""

from dataclasses import replace

from bcn.paper.recipes.row import LINEAR, Row, Rows, model_rows
from bcn.training.recipe import Data, Optim, Recipe, Scale

PUBLISHED = Recipe(
    name="table3/multirn-h",
    scale="paper",
    data=Data("sort-of-clevr-legacy", test=200),
    model="sort-of-clevr/multirn-h",
    optim=Optim("adam", 1e-3, milestones=(20,)),
    batch_size=8,
    epochs=50,
)
UNSPECIFIED = ("batch_size", "optim.weight_decay")
NOTES = {
    "generator": "`sort-of-clevr-legacy` has the rules of the original public generator; `sort-of-clevr-v1` has the "
    "paper's rules without that generator's faults, which allow about a third of its scenes, and 5,000 test images",
    "initialisation": "PyTorch's default initialisation; the paper gives none",
    "batching": "a batch has all questions about its images; the paper does not say how it batches questions",
    "model selection": "the epoch that is best on 1,000 validation images is tested; the paper does not say which",
}
NO_BCN_NOTES = {
    "coordinates": "without its BCN, multiRN keeps the coordinate planes, as the printed parameter count requires; the "
    "paper's text says that they go with the BCN"
}


def scale_down(recipe: Recipe, scale: Scale) -> Recipe:
    """The numbers of each scale. They change amounts, epochs and schedule, never the model."""
    if scale == "smoke":
        return replace(
            recipe,
            scale=scale,
            data=replace(recipe.data, train=4, val=2, test=2),
            optim=replace(recipe.optim, milestones=()),
            batch_size=2,
            epochs=2,
            curriculum_epochs=1,
        )
    if scale == "cpu":
        return replace(
            recipe,
            scale=scale,
            data=replace(recipe.data, questions="all"),
            optim=replace(
                recipe.optim, lr=0.0015, schedule="warmup-cosine", milestones=(), warmup=0.1, ema_decay=0.999
            ),
            epochs=24,
            curriculum_epochs=2,
        )
    return recipe


def at_scale(recipe: Recipe, scale: Scale) -> Recipe:
    return scale_down(replace(recipe, data=replace(recipe.data, name="sort-of-clevr-v1", test=None)), scale)


def augment(recipe: Recipe, scale: Scale) -> Recipe:
    """The eight symmetries of the square at `cpu`: a BCN that broadcasts learns 9,800 images by heart."""
    return replace(recipe, augment=scale == "cpu")


def shorten(recipe: Recipe, scale: Scale) -> Recipe:
    """RN for fewer epochs at `cpu`: four hours of one core."""
    return replace(recipe, epochs=10) if scale == "cpu" else recipe


BASE = Row("equation 4 with 100 objects", PUBLISHED, at_scale, UNSPECIFIED, lambda recipe: NOTES)
ROWS: Rows = model_rows(
    "table3",
    BASE,
    {
        "rn-original": "the relation network with the sizes of its own paper",
        "rn": "the relation network with multiRN's sizes, 25 objects",
        "rn-h": "the relation network with multiRN's sizes, 100 objects",
        "mlp": "flattened features and the question, no relations",
        "cce-mlp": "the same with coordinate planes",
        "multirn-no-bcn": "multiRN without the broadcast vector",
        "multirn": "equation 4 with 25 objects",
        "multirn-h": BASE.about,
    },
)
ROWS["rn"] = ROWS["rn"].then(shorten)
for name in ("multirn-no-bcn", "multirn", "multirn-h"):
    ROWS[name] = ROWS[name].then(augment)
for name in ("multirn", "multirn-h"):
    ROWS[name] = ROWS[name].then(LINEAR)
ROWS["multirn-no-bcn"] = replace(ROWS["multirn-no-bcn"], notes=lambda recipe: NOTES | NO_BCN_NOTES)
