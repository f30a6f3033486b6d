"""Table 4: CLEVR from pixels (section 5.3, appendix A).

At the scale `paper` on CLEVR itself; at `cpu` and `smoke` on clevr-like-v1, our own scenes and questions like CLEVR's.
"""

from dataclasses import replace

from bcn.paper.recipes.row import RELU, Row, Rows, model_rows
from bcn.training.recipe import Auxiliary, Data, Optim, Recipe, Scale

PUBLISHED = Recipe(
    name="table4/multirn-h",
    scale="paper",
    data=Data("clevr-v1.0"),
    model="clevr/multirn-h",
    optim=Optim("adam", 2.5e-4, weight_decay=1e-4, milestones=(200,)),
    batch_size=6,
    epochs=400,
    word_embeddings="glove",
)
BLIND = ("q-type", "lstm")
"""rows without an image: neither augmentation nor auxiliary supervision"""
CITED = (*BLIND, "cnn-lstm", "cnn-lstm-sa", "film-pixels")
"""rows whose metrics the paper cites from others"""


def notes(recipe: Recipe) -> dict[str, str]:
    row = recipe.name.split("/")[1]
    sentences = {
        "batch size": f"{recipe.batch_size} images with all of their questions in a batch; the paper has 64 questions",
        "model selection": "the epoch that is best in validation is tested; the paper does not say which",
        "pixels": "pixels are normalised by mean and standard deviation of the data; the paper does not say how",
        "initialisation": "He initialisation for the CNN, Glorot and orthogonal for the LSTM, variance-balanced for "
        "the first layer that sees image and question; the paper gives none",
    }
    if recipe.data.name.startswith("clevr-v1.0"):
        sentences["validation"] = (
            "the last 1,000 training images are held out for validation, and CLEVR's split val is tested: the answers "
            "of its test split are not public"
        )
        sentences["GloVe"] = "GloVe embeddings are not normalised; the paper does not say"
    else:
        sentences["amount"] = "as many images of `clevr-like-v1` as were made; CLEVR has 70,000 training images"
    if recipe.auxiliary:
        sentences["referent head"] = "multiRN predicts referents with g, other models with a linear layer"
    if row in CITED:
        sentences["baseline"] = "the paper cites this baseline; ours has our CNN and our question encoder"
    return sentences


def at_scale(recipe: Recipe, scale: Scale) -> Recipe:
    """The numbers of each scale. They change data, amounts, epochs and schedule, never the model."""
    if scale == "paper":
        return recipe
    recipe = replace(
        recipe,
        scale=scale,
        data=replace(recipe.data, name=recipe.data.name.replace("clevr-v1.0", "clevr-like-v1")),
        word_embeddings="random",
    )
    if scale == "smoke":
        return replace(
            recipe,
            data=replace(recipe.data, train=4, val=2, test=2),
            optim=replace(recipe.optim, milestones=()),
            batch_size=2,
            epochs=1,
        )
    auxiliary = None if recipe.name.split("/")[1] in BLIND else Auxiliary(object_epochs=5, referent_epochs=2)
    return replace(
        recipe,
        optim=Optim(
            "muon", 0.002, momentum=0.9, schedule="warmup-cosine", warmup=0.005, clip_norm=10.0, ema_decay=0.999
        ),
        batch_size=16,
        epochs=6 + (auxiliary.epochs if auxiliary else 0),
        augment=auxiliary is not None,
        auxiliary=auxiliary,
    )


BASE = Row("equation 4 with 256 objects", PUBLISHED, at_scale, (), notes)
ROWS: Rows = model_rows(
    "table4",
    BASE,
    {
        "q-type": "the most frequent answer to questions of the same type",
        "lstm": "the question without the image",
        "cnn-lstm": "the whole image in one vector, concatenated with the question",
        "cnn-lstm-sa": "stacked attention",
        "rn": "the relation network, 64 objects",
        "film-pixels": "FiLM: a CNN modulated by the question",
        "multirn": "equation 4 with 64 objects",
        "multirn-h": BASE.about,
        "multirn-h-224": "equation 4 with 784 objects, on images of 224x224",
    },
)
ROWS["multirn-h-224"] = ROWS["multirn-h-224"].publish(data=Data("clevr-v1.0-224"))
for name in ("multirn", "multirn-h", "multirn-h-224"):
    ROWS[name] = ROWS[name].then(RELU)
