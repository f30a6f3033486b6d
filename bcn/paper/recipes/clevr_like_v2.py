"""Ours: table 4 on clevr-like-v2, whose questions are in CLEVR's words, with BCNs whose channels do not die.

On both cores, and on CLEVR's number of images once they are made (`bcn clevr make`):

torchrun --nproc-per-node=2 -m bcn train clevr-like-v2/multirn-rounds --scale cpu --set data.train=70000
"""

from collections.abc import Mapping
from dataclasses import replace

from bcn.paper.recipes import table4
from bcn.paper.recipes.row import Row, Rows
from bcn.training.recipe import Auxiliary, Optim, Recipe, Scale

IMAGES = {"smoke": 4, "cpu": 30_000, "paper": 70_000}
"""to train on; CLEVR has 70,000"""
BATCH = {"smoke": 2, "cpu": 32, "paper": 64}
"""images with all ten questions of each, over all ranks together"""
ANSWERS = Optim("adam", 2.5e-4, schedule="warmup-doubling", warmup=0.35, clip_norm=10.0, ema_decay=0.999)
"""in 400 epochs the learning rate starts at 2.5e-6 and doubles every 20 epochs, up to 2.5e-4"""


def on_v2(recipe: Recipe, scale: Scale) -> Recipe:
    """Table 4's recipe on the other questions, in larger batches."""
    scaled = table4.at_scale(recipe, scale)
    data = replace(scaled.data, name="clevr-like-v2", train=IMAGES[scale])
    followed = replace(scaled, data=data, word_embeddings="random", batch_size=BATCH[scale])
    if scale != "cpu" or not followed.auxiliary:
        return followed
    auxiliary = Auxiliary(object_epochs=3, referent_epochs=1)
    return replace(followed, epochs=auxiliary.epochs + 6, auxiliary=auxiliary)


def from_answers(recipe: Recipe, scale: Scale) -> Recipe:
    """Answers alone, as the paper trains, with the slow start that public implementations of RN call decisive.

    They reverse questions too, for an LSTM of one direction to end with the words that say what is asked. Ours has both
    directions, of which one ends there: to reverse questions would only exchange the two.
    """
    if scale == "smoke":
        return replace(recipe, optim=ANSWERS)
    epochs = {"cpu": 16, "paper": 400}[scale]
    return replace(recipe, optim=ANSWERS, batch_size=64, epochs=epochs, augment=False, auxiliary=None)


def balanced(recipe: Recipe, scale: Scale) -> Recipe:
    return replace(recipe, initialisation="balanced")


def in_rounds(recipe: Recipe, scale: Scale) -> Recipe:
    """A balanced start, without which broadcasting after asking stays on its plateau; more and smaller steps."""
    followed = balanced(recipe, scale)
    if scale != "cpu":
        return followed
    return replace(followed, batch_size=16, epochs=14)


def notes(recipe: Recipe) -> Mapping[str, str]:
    sentences = table4.notes(recipe) | {
        "amount": "`clevr-like-v2`, our scenes with questions in CLEVR's words and forms"
    }
    if recipe.name.endswith("-answers"):
        sentences["warm-up"] = "the learning rate starts at a hundredth and doubles seven times; 640 questions a batch"
    if recipe.initialisation == "balanced":
        sentences["initialisation"] = (
            "He initialisation for the CNN, Glorot and orthogonal for the LSTM, variance-balanced on 256 training "
            "images for every layer that sees a broadcast vector; the paper gives none"
        )
    if recipe.auxiliary and recipe.model == "clevr/multirn-rounds":
        sentences["steps"] = "before each round a linear layer predicts the objects of that step of the program"
    return sentences


def _row(name: str, about: str, row: str = "", *, model: str = "", **arguments: object) -> Row:
    """A row of table 4, by default that of the same name, with a model of ours and its arguments."""
    base = replace(table4.ROWS[row or name], about=about, at_scale=on_v2, notes=notes)
    named = base.publish(name=f"clevr-like-v2/{name}", arguments=tuple(arguments.items()))
    return named.publish(model=model) if model else named


ROWS: Rows = {
    "q-type": _row("q-type", "the most frequent answer to questions of the same type"),
    "cnn-lstm-sa": _row("cnn-lstm-sa", "stacked attention"),
    "film-pixels": _row("film-pixels", "FiLM: a CNN modulated by the question"),
    "multirn-no-bcn": _row("multirn-no-bcn", "256 objects, each alone with the question", "multirn-h", sizes=()),
    "multirn-h": _row("multirn-h", "equation 4 with 256 objects, no ReLU after the BCN", final_relu=False),
    "multirn-rounds": _row(
        "multirn-rounds",
        "broadcast after asking, a round for each relation of a chain",
        "multirn-h",
        model="clevr/multirn-rounds",
        width=128,
        rounds=3,
    ).then(in_rounds),
    "multirn-h-answers": _row(
        "multirn-h-answers", "multirn-h from answers alone, with a slow start", "multirn-h", final_relu=False
    ).then(from_answers),
    "multirn-h-balanced-answers": _row(
        "multirn-h-balanced-answers", "the same from a variance-balanced start", "multirn-h", final_relu=False
    )
    .then(from_answers)
    .then(balanced),
}
