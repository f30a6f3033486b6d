"""Table 3: Sort-of-CLEVR (section 5.3, appendix A), on our data and on that of the time (table3-legacy)."""

from dataclasses import replace

from bcn.paper.recipes.row import ROWS, Row, row, vary
from bcn.paper.tables import published
from bcn.training.recipe import Data, Optim, Recipe, Scale

NO_DECAY = "no weight decay; the paper does not give any"
OPEN = (
    "the paper does not give the batch size (8 images with all of their questions here) or the initialisation "
    "(PyTorch's default here)",
    NO_DECAY,
    "all questions about an image are in the same step; the paper does not say how it groups them",
    "the epoch that is best on 1,000 validation images is tested; the paper does not say which it tests",
)
KEEPS_PLANES = "keeps the coordinate planes, as the printed count requires; the text says they go with the BCN"
V1 = "data: sort-of-clevr-v1, the paper's rules without the faults of the generator of the time, 5,000 test images"
LEGACY = "data: sort-of-clevr-legacy, the rules of the generator of the time, 2,000 test images instead of 200"
SCHEDULE = "{} epochs, one-cycle to {:g}, instead of 20 epochs of 0.001 and 30 of 0.0001"


def at_scale(recipe: Recipe, scale: Scale) -> Recipe:
    """The one place with the numbers of each scale. It changes amounts, batch, epochs and schedule, never the model."""
    if scale == "smoke":
        return replace(
            recipe,
            scale=scale,
            data=replace(recipe.data, train=4, val=2, test=2),
            optim=replace(recipe.optim, milestones=()),
            batch_size=2,
            epochs=2,
            curriculum_epochs=1,
            departures=(*recipe.departures, "a few images and two epochs: the figures mean nothing"),
        )
    if scale == "cpu":
        epochs, peak, first, average = 24, 0.0015, 2, 0.999
        return replace(
            recipe,
            scale=scale,
            data=replace(recipe.data, questions="all"),
            optim=replace(
                recipe.optim, lr=peak, schedule="warmup-cosine", milestones=(), warmup=0.1, ema_decay=average
            ),
            batch_size=8,
            epochs=epochs,
            curriculum_epochs=first,
            departures=(
                *recipe.departures,
                SCHEDULE.format(epochs, peak),
                f"non-relational questions alone for the first {first} epochs",
                "all 36 questions about each training image instead of 20",
                f"the exponential moving average of the weights ({average:g}) is tested",
            ),
        )
    return recipe


def reworded(recipe: Recipe, was: str, now: str) -> Recipe:
    """With one deviation in other words."""
    return replace(recipe, departures=tuple(now if said == was else said for said in recipe.departures))


def lasting(recipe: Recipe, epochs: int) -> Recipe:
    """The same for another number of epochs."""
    was, now = (SCHEDULE.format(count, recipe.optim.lr) for count in (recipe.epochs, epochs))
    return reworded(replace(recipe, epochs=epochs), was, now)


@row("table3/rn-original")
def rn_original(scale: Scale) -> Recipe:
    """The relation network with the sizes of its own paper."""
    return vary(multirn_h(scale), "table3/rn-original", "sort-of-clevr/rn-original")


@row("table3/rn")
def rn(scale: Scale) -> Recipe:
    """The relation network with multiRN's sizes, 25 objects; at `cpu` for fewer epochs, four hours of one core."""
    recipe = vary(multirn_h(scale), "table3/rn", "sort-of-clevr/rn")
    return lasting(recipe, 10) if scale == "cpu" else recipe


@row("table3/rn-h")
def rn_h(scale: Scale) -> Recipe:
    """The same with 100 objects."""
    return vary(multirn_h(scale), "table3/rn-h", "sort-of-clevr/rn-h")


@row("table3/mlp")
def mlp(scale: Scale) -> Recipe:
    """Flattened features and the question, no relations."""
    return vary(multirn_h(scale), "table3/mlp", "sort-of-clevr/mlp")


@row("table3/cce-mlp")
def cce_mlp(scale: Scale) -> Recipe:
    """The same with coordinate planes."""
    return vary(multirn_h(scale), "table3/cce-mlp", "sort-of-clevr/cce-mlp")


@row("table3/multirn-no-bcn")
def multirn_no_bcn(scale: Scale) -> Recipe:
    """MultiRN without what the BCN broadcasts."""
    recipe = vary(multirn_h(scale), "table3/multirn-no-bcn", "sort-of-clevr/multirn-no-bcn")
    return replace(recipe, departures=(*recipe.departures, KEEPS_PLANES))


@row("table3/multirn")
def multirn(scale: Scale) -> Recipe:
    """Equation 4 with 25 objects."""
    return vary(multirn_h(scale), "table3/multirn", "sort-of-clevr/multirn")


@row("table3/multirn-h")
def multirn_h(scale: Scale) -> Recipe:
    """Equation 4 with 100 objects. Every other row changes the model alone."""
    recipe = Recipe(
        name="table3/multirn-h",
        scale="paper",
        data=Data("sort-of-clevr-v1"),
        model="sort-of-clevr/multirn-h",
        optim=Optim("adam", 1e-3, milestones=(20,)),
        batch_size=8,
        epochs=50,
        paper=published("table3", "multirn-h"),
        departures=(V1, *OPEN),
    )
    return at_scale(recipe, scale)


def legacy(of: Row) -> Row:
    """The same row on the data of the time, which takes longer to learn and is easier to learn by heart."""

    def recipe(scale: Scale) -> Recipe:
        base = of(scale)
        base = replace(
            base,
            name=base.name.replace("table3/", "table3-legacy/"),
            data=replace(base.data, name="sort-of-clevr-legacy", test=base.data.test or 2000),
        )
        base = reworded(base, V1, LEGACY)
        if scale != "cpu":
            return base
        base, decay = lasting(base, 36), 1e-4
        decays = f"weight decay of {decay:g}, as the paper has for CLEVR; it does not give any here"
        return reworded(replace(base, optim=replace(base.optim, weight_decay=decay)), NO_DECAY, decays)

    return recipe


for _name, _of in list(ROWS.items()):
    if _name.startswith("table3/"):
        row(_name.replace("table3/", "table3-legacy/"))(legacy(_of))
