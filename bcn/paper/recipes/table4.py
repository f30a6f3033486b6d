"""Table 4: CLEVR from pixels (section 5.3, appendix A).

At the scale `paper` on CLEVR itself; at `cpu` and `smoke` on clevr-like-v1, our own scenes and questions like CLEVR's.
"""

from dataclasses import replace

from bcn.paper.recipes.row import row, vary
from bcn.paper.tables import published
from bcn.training.recipe import Auxiliary, Data, Optim, Recipe, Scale

OPEN = (
    "all questions about an image are in the same step; the paper does not say how it groups them",
    "the epoch that is best in validation is tested; the paper does not say which it tests",
    "the paper does not give the preparation of pixels (mean and spread of the data here) or the initialisation "
    "(PyTorch's default here, but for the CNN, He's, the LSTM, Glorot's and orthogonal, and the first layer that sees "
    "image and question, which objects, coordinates and a word of the question move equally)",
)
OF_CLEVR = (
    "a step has 6 images with all ten of their questions instead of 64 questions",
    "validation is of the last 1,000 training images, which are not trained on, and the test of CLEVR's split val: the "
    "answers of its test split are not public",
    "GloVe's vectors are taken as they are",
)
LIKE = (
    "data: clevr-like-v1, scenes and questions of our own like CLEVR's, as many as were made, instead of CLEVR",
    "vectors of words start at random instead of GloVe's",
)
OURS = "not trained by the paper, which cites others: their idea, with our CNN and our reading of questions"


AS_PUBLISHED = Recipe(
    name="table4/multirn-h",
    scale="paper",
    data=Data("clevr-v1.0"),
    model="clevr/multirn-h",
    optim=Optim("adam", 2.5e-4, weight_decay=1e-4, milestones=(200,)),
    batch_size=6,
    epochs=400,
    word_embeddings="glove",
    paper=published("table4", "multirn-h"),
    departures=(*OPEN, *OF_CLEVR),
)


def at_scale(recipe: Recipe, scale: Scale, *, sees: bool = True) -> Recipe:
    """The one place with the numbers of each scale. It changes data, amounts, epochs and schedule, never the model.

    What does not see the image is not taught by scenes.
    """
    if scale == "paper":
        return recipe
    data = replace(recipe.data, name=recipe.data.name.replace("clevr-v1.0", "clevr-like-v1"))
    if scale == "smoke":
        return replace(
            recipe,
            scale=scale,
            data=replace(data, train=4, val=2, test=2),
            optim=replace(recipe.optim, milestones=()),
            batch_size=2,
            epochs=1,
            word_embeddings="random",
            departures=(*OPEN, *LIKE, "a few images and one epoch: the figures mean nothing"),
        )
    objects, referents, answering, peak, batch = 5, 2, 6, 0.002, 16
    changed = (
        f"{answering} epochs of answers in steps of {batch} images, Muon instead of Adam, one-cycle to {peak:g}, "
        "averaged weights, gradients clipped, instead of 400 epochs of falling rates",
        f"weight decay of 0 instead of {recipe.optim.weight_decay:g}",
        f"scenes and programs teach what sees the image, in training alone: for {objects} epochs before these the CNN "
        f"tells what is where, for {referents} the network points at the things that are meant, and then answers and "
        "points, with equal weight; multirn points with g, the others with a linear layer of their own; q-type and "
        "lstm are not taught",
        "the images of what sees them are moved by up to a 16th of their size, and half of them mirrored, with left "
        "and right exchanged in the questions",
    )
    return replace(
        recipe,
        scale=scale,
        data=data,
        optim=replace(
            recipe.optim,
            name="muon",
            lr=peak,
            momentum=0.9,
            weight_decay=0.0,
            schedule="warmup-cosine",
            milestones=(),
            warmup=0.005,
            clip_norm=10.0,
            ema_decay=0.999,
        ),
        batch_size=batch,
        epochs=objects + referents + answering if sees else answering,
        augment=sees,
        auxiliary=Auxiliary(objects, referents) if sees else None,
        word_embeddings="random",
        departures=(*OPEN, *LIKE, *changed),
    )


@row("table4/q-type")
def q_type(scale: Scale) -> Recipe:
    """The commonest answer to questions of the same type."""
    return rival("q-type", scale, sees=False)


@row("table4/lstm")
def lstm(scale: Scale) -> Recipe:
    """The question without the image."""
    return rival("lstm", scale, sees=False)


@row("table4/cnn-lstm")
def cnn_lstm(scale: Scale) -> Recipe:
    """The whole image in one vector beside the question."""
    return rival("cnn-lstm", scale)


@row("table4/cnn-lstm-sa")
def cnn_lstm_sa(scale: Scale) -> Recipe:
    """Stacked attention."""
    return rival("cnn-lstm-sa", scale)


@row("table4/rn")
def rn(scale: Scale) -> Recipe:
    """The relation network, 64 objects."""
    return vary(multirn_h(scale), "table4/rn", "clevr/rn")


@row("table4/film-pixels")
def film_pixels(scale: Scale) -> Recipe:
    """A CNN steered by the question."""
    return rival("film-pixels", scale)


@row("table4/multirn")
def multirn(scale: Scale) -> Recipe:
    """Equation 4 with 64 objects."""
    return vary(multirn_h(scale), "table4/multirn", "clevr/multirn")


@row("table4/multirn-h")
def multirn_h(scale: Scale) -> Recipe:
    """Equation 4 with 256 objects. Every other row changes the model alone, and the last one the image."""
    return at_scale(AS_PUBLISHED, scale)


@row("table4/multirn-h-224")
def multirn_h_224(scale: Scale) -> Recipe:
    """The same on images of 224x224, 784 objects."""
    recipe = vary(multirn_h(scale), "table4/multirn-h-224", "clevr/multirn-h-224")
    return replace(recipe, data=replace(recipe.data, name=f"{recipe.data.name}-224"))


def rival(name: str, scale: Scale, *, sees: bool = True) -> Recipe:
    recipe = vary(at_scale(AS_PUBLISHED, scale, sees=sees), f"table4/{name}", f"clevr/{name}")
    return replace(recipe, departures=(*recipe.departures, OURS))
