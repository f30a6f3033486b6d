"""Ours: what a BCN is worth, and when: how it starts and ends x how a batch is drawn, at equal steps.

A row is "variant-regime". The study is read in validation; `bcn.paper.study` writes its page.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from bcn.paper.recipes import table3
from bcn.paper.recipes.row import Row, Rows
from bcn.training.recipe import Optim, Recipe, Scale


@dataclass(frozen=True)
class Variant:
    about: str
    final_relu: bool = True
    negative_slope: float = 0.0
    initialisation: Literal["default", "positive-bias", "balanced"] = "default"
    broadcast: bool = True

    @property
    def arguments(self) -> tuple[tuple[str, Any], ...]:
        """Of the model."""
        if not self.broadcast:
            return (("sizes", ()),)
        slope = (("negative_slope", self.negative_slope),) if self.negative_slope else ()
        return (("final_relu", self.final_relu), *slope)


@dataclass(frozen=True)
class Regime:
    about: str
    fields: Mapping[str, Any]
    """of the recipe, where they are not those of table 3 at `cpu`"""
    variants: tuple[str, ...]
    row: str = "multirn"
    """of table 3"""
    data: str = "sort-of-clevr-v1"


VARIANTS = {
    "relu": Variant("a ReLU after the last convolution"),
    "leaky": Variant("a leaky ReLU of slope 0.1 after it", negative_slope=0.1),
    "positive": Variant("a ReLU, and biases that start every channel above zero", initialisation="positive-bias"),
    "linear": Variant("nothing after the last convolution", final_relu=False),
    "balanced": Variant("nothing after it, and a variance-balanced start", final_relu=False, initialisation="balanced"),
    "none": Variant("no BCN", broadcast=False),
    "none-balanced": Variant("no BCN, and a variance-balanced start", initialisation="balanced", broadcast=False),
}
SHORT = Optim("adam", 1.5e-3, schedule="warmup-cosine", warmup=0.1)
ALL, FEW = tuple(VARIANTS), ("relu", "linear", "balanced", "none")
REGIMES = {
    "images": Regime("8 images x 36 questions", {"optim": SHORT, "epochs": 14, "curriculum_epochs": 0}, ALL),
    "curriculum": Regime("the same, two epochs of non-relational questions first", {"optim": SHORT, "epochs": 14}, FEW),
    "fresh": Regime(
        "8 images x 36 questions, scenes that never repeat",
        {"optim": SHORT, "epochs": 30, "curriculum_epochs": 0},
        FEW,
        data="sort-of-clevr-stream",
    ),
    "100-objects": Regime(
        "8 images x 36 questions, 100 objects",
        {"optim": SHORT, "epochs": 14, "curriculum_epochs": 0},
        FEW,
        row="multirn-h",
    ),
    "pairs": Regime(
        "64 pairs of an image and a question, drawn independently, as the paper trains",
        {
            "optim": Optim("adam", 1e-3, milestones=(20,)),
            "epochs": 50,
            "curriculum_epochs": 0,
            "batch_of": "pairs",
            "batch_size": 64,
            "questions": "sampled",
        },
        ALL,
    ),
}


def _row(variant: str, regime: str) -> Row:
    how, when = VARIANTS[variant], REGIMES[regime]

    def at_scale(recipe: Recipe, scale: Scale) -> Recipe:
        """The same at `cpu` and `paper`."""
        ours = table3.at_scale(recipe, "smoke" if scale == "smoke" else "cpu")
        fields = dict(when.fields)
        data = replace(ours.data, name=when.data, questions=fields.pop("questions", ours.data.questions))
        if scale == "smoke":
            fields |= {"optim": ours.optim, "epochs": ours.epochs, "batch_size": ours.batch_size}
        return replace(
            ours,
            name=f"broadcast/{variant}-{regime}",
            scale=scale,
            data=data,
            arguments=how.arguments,
            initialisation=how.initialisation,
            **fields,
        )

    return replace(table3.ROWS[when.row], about=f"{how.about}; {when.about}", at_scale=at_scale, notes=_notes)


def _notes(recipe: Recipe) -> Mapping[str, str]:
    """Those of table 3 that hold of every row of the study."""
    return {topic: note for topic, note in table3.NOTES.items() if topic not in ("initialisation", "batching")}


ROWS: Rows = {
    f"{variant}-{regime}": _row(variant, regime) for regime, when in REGIMES.items() for variant in when.variants
}
