"""The stages of a run: object supervision, referent supervision, curriculum, main; most runs have the last alone."""

from typing import NamedTuple, cast

from torch import nn

from bcn.data.dataset import Dataset
from bcn.training.auxiliary import ReferentHead, ReferentLoss
from bcn.training.losses import AnswerLoss
from bcn.training.recipe import Recipe, phases
from bcn.training.splits import Splits
from bcn.training.state import State


class Stage(NamedTuple):
    data: Dataset
    loss: nn.Module
    """from a batch to its summed loss"""
    answers: bool = True
    """whether answers are trained, so that validation means something"""
    curriculum: bool = False
    """whether it asks the easy questions alone"""
    questions_per_image: int = 0
    """how many a step trains; 0 is all"""
    unused_parameters: bool = False
    """whether some parameters of `loss` get no gradient"""
    name: str = "main"
    epochs: int = 0


def make_stages(recipe: Recipe, splits: Splits, state: State) -> list[Stage]:
    """The stages of a recipe that have epochs, in order."""
    train, preprocessing, heads = splits.train, splits.train.preprocessing, state.heads
    asked = recipe.questions_per_image
    main = Stage(train, AnswerLoss(state.model, preprocessing, localise=recipe.localise), questions_per_image=asked)
    stages = {}
    if splits.objects is not None:
        stages["object supervision"] = Stage(splits.objects, AnswerLoss(heads["objects"], preprocessing), answers=False)
    if "referents" in heads:
        alone, both = (
            ReferentLoss(cast(ReferentHead, heads["referents"]), preprocessing, answers=answers)
            for answers in (False, True)
        )
        stages["referent supervision"] = main._replace(loss=alone, answers=False, unused_parameters=True)
        main = main._replace(loss=both)
    stages |= {"curriculum": main._replace(curriculum=True), "main": main}
    return [stages[name]._replace(name=name, epochs=epochs) for name, epochs in phases(recipe).items()]
