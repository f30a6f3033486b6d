"""How our recipe of a row departs from the paper's: derived from the fields that differ, a sentence for each topic.

What no field shows is in the row's notes, written by hand. They are keyed by topic too, and take
precedence over a derived sentence.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from bcn.paper.recipes.row import Row
from bcn.training.recipe import Auxiliary, Optim, Recipe, Scale

INITIALISATIONS = {
    "default": "PyTorch's",
    "positive-bias": "PyTorch's, with biases that start every channel of the BCN above zero",
    "balanced": "variance-balanced on 256 training images",
}
OPTIMISERS = {"sgd": "SGD", "adam": "Adam", "muon": "Muon"}


def departures(row: Row, scale: Scale) -> dict[str, str]:
    """Every departure of a row from the paper, and every choice that the paper leaves open: topic to sentence."""
    ours, paper = row.recipe(scale), row.published
    fields, published = flatten(ours), flatten(paper)
    differing = {field for field in fields if fields[field] != published[field]} - {"name", "scale"}
    sentences = {"smoke": "a few images and epochs: the metrics mean nothing"} if scale == "smoke" else {}
    for topic, (covered, describe) in TOPICS.items():
        open_fields = [field for field in covered if field in row.unspecified]
        if open_fields:
            sentences[topic] = f"{_value(topic, fields[open_fields[0]])}; the paper gives none"
        elif differing & set(covered) and (sentence := describe(ours, paper)):
            sentences[topic] = sentence
    uncovered = differing - {field for covered, _ in TOPICS.values() for field in covered}
    assert not uncovered, f"{ours.name} differs from the paper in {', '.join(sorted(uncovered))}: add a topic"
    return {**sentences, **row.notes(ours)}


def flatten(recipe: Recipe) -> dict[str, Any]:
    """The fields by path, "optim.lr"; without what the paper reports, which decides nothing."""
    flat: dict[str, Any] = {}
    for name, value in asdict(recipe).items():
        if name == "auxiliary":
            value = value or asdict(Auxiliary())
        flat |= {f"{name}.{key}": item for key, item in value.items()} if isinstance(value, dict) else {name: value}
    return {path: value for path, value in flat.items() if path != "paper"}


def _value(topic: str, value: float) -> str:
    return f"{topic} {value:g}" if value else f"no {topic}"


def _instead(topic: str, ours: float, paper: float) -> str:
    return f"{_value(topic, ours)} instead of {paper:g}"


def _images(ours: Recipe, paper: Recipe) -> str:
    def count(images: int | None) -> str:
        return "all" if images is None else f"{images:,}"

    pairs = {split: (getattr(ours.data, split), getattr(paper.data, split)) for split in ("train", "val", "test")}
    differing = {split: map(count, pair) for split, pair in pairs.items() if pair[0] != pair[1]}
    return ", ".join(f"{one} {split} images instead of {other}" for split, (one, other) in differing.items())


def _test_sets(ours: Recipe, paper: Recipe) -> str:
    added = [name for name in ours.data.tests if name not in paper.data.tests]
    missing = [name for name in paper.data.tests if name not in ours.data.tests]
    return f"tested on {_code(added)}" + (f" instead of {_code(missing)}" if missing else " too")


def _code(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _optimiser(optim: Optim) -> str:
    return OPTIMISERS[optim.name] + (f" with momentum {optim.momentum:g}" if optim.momentum else "")


def _schedule(recipe: Recipe) -> str:
    """
    >>> from bcn.paper.tables import find_recipe
    >>> _schedule(find_recipe("table1/bcn", "paper"))
    '30 epochs with step decay from 0.01 (epochs 10, 20)'
    >>> _schedule(find_recipe("table1/bcn", "cpu"))
    '10 epochs with warm-up + cosine decay, peak learning rate 0.05'
    """
    optim, epochs = recipe.optim, f"{recipe.epochs} epoch{'s' * (recipe.epochs > 1)}"
    if optim.schedule == "warmup-cosine":
        return f"{epochs} with warm-up + cosine decay, peak learning rate {optim.lr:g}"
    if optim.schedule == "warmup-doubling":
        return f"{epochs} at learning rate {optim.lr:g}, after a warm-up in seven doublings"
    if not optim.milestones:
        return f"{epochs} at learning rate {optim.lr:g}"
    return f"{epochs} with step decay from {optim.lr:g} (epochs {', '.join(map(str, optim.milestones))})"


def _auxiliary(ours: Recipe, paper: Recipe) -> str:
    auxiliary = ours.auxiliary or Auxiliary()
    return (
        f"auxiliary supervision from scenes and programs, in training alone: {auxiliary.object_epochs} epochs of "
        f"object pre-training for the CNN, {auxiliary.referent_epochs} of referent supervision, then answers and "
        "referents with equal weight"
    )


def _augmentation(data: str) -> str:
    if data.startswith("sort-of-clevr"):
        return "augmentation: the eight symmetries of the square, questions and answers with the image"
    return (
        "augmentation: translations by up to 1/16 of the image and horizontal flips, with left and right exchanged in "
        "the questions"
    )


def _arguments(ours: Recipe, paper: Recipe) -> str:
    differing = dict(set(ours.arguments) - set(paper.arguments))
    article = "a" if differing.get("final_relu") else "no"
    sentences = {
        "sizes": "no BCN",
        "final_relu": f"{article} ReLU after the last convolution of the BCN, which the paper leaves open",
        "negative_slope": f"a leaky ReLU of slope {differing.get('negative_slope')} after the BCN's last convolution",
        "question_dim": f"question vectors of {differing.get('question_dim')} bits",
        "num_answers": f"{differing.get('num_answers')} answers",
    }
    return "; ".join(sentences[name] for name in sorted(differing))


TOPICS: dict[str, tuple[tuple[str, ...], Callable[[Recipe, Recipe], str]]] = {
    "data": (("data.name",), lambda ours, paper: f"data set `{ours.data.name}` instead of `{paper.data.name}`"),
    "images": (("data.train", "data.val", "data.test"), _images),
    "held-out images": (
        ("data.split",),
        lambda ours, paper: (
            "the validation split is held out and the best epoch on it tested, instead of training on "
            "all training images and testing the last epoch"
        ),
    ),
    "questions": (
        ("data.questions",),
        lambda ours, paper: "all 36 questions about each training image instead of 20",
    ),
    "test sets": (("data.tests",), _test_sets),
    "optimiser": (
        ("optim.name",),
        lambda ours, paper: f"{_optimiser(ours.optim)} instead of {_optimiser(paper.optim)}",
    ),
    "momentum": (
        ("optim.momentum",),
        lambda ours, paper: (
            _instead("momentum", ours.optim.momentum, paper.optim.momentum)
            if ours.optim.name == paper.optim.name
            else ""
        ),
    ),
    "schedule": (
        ("epochs", "optim.lr", "optim.schedule", "optim.milestones", "optim.warmup"),
        lambda ours, paper: f"{_schedule(ours)}, instead of {_schedule(paper)}",
    ),
    "weight decay": (
        ("optim.weight_decay",),
        lambda ours, paper: _instead("weight decay", ours.optim.weight_decay, paper.optim.weight_decay),
    ),
    "gradient clipping": (
        ("optim.clip_norm",),
        lambda ours, paper: f"gradients clipped to norm {ours.optim.clip_norm:g}",
    ),
    "EMA": (
        ("optim.ema_decay",),
        lambda ours, paper: (
            f"the exponential moving average (EMA) of the weights is tested, decay {ours.optim.ema_decay:g}"
        ),
    ),
    "batch size": (
        ("batch_size",),
        lambda ours, paper: _instead("batch size", ours.batch_size, paper.batch_size),
    ),
    "curriculum": (
        ("curriculum_epochs",),
        lambda ours, paper: f"curriculum: non-relational questions alone for the first {ours.curriculum_epochs} epochs",
    ),
    "augmentation": (
        ("augment",),
        lambda ours, paper: _augmentation(ours.data.name),
    ),
    "BCN": (("arguments",), _arguments),
    "initialisation": (
        ("initialisation",),
        lambda ours, paper: f"initial weights: {INITIALISATIONS[ours.initialisation]}; the paper gives none",
    ),
    "batching": (
        ("batch_of",),
        lambda ours, paper: "a batch is of image-question pairs drawn independently; the paper does not say",
    ),
    "auxiliary supervision": (("auxiliary.object_epochs", "auxiliary.referent_epochs"), _auxiliary),
    "precision": (
        ("precision",),
        lambda ours, paper: (
            "matrix products and convolutions of training in bfloat16; sums over objects, losses, weights and "
            "evaluation in float32"
        ),
    ),
    "word embeddings": (
        ("word_embeddings",),
        lambda ours, paper: f"word embeddings initialised at {ours.word_embeddings} instead of with GloVe",
    ),
}
"""for each topic the fields that it covers, and its sentence from our recipe and the paper's"""
