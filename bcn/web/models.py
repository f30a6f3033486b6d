"""The models that the server was started with: chosen by name or family, and warmed up."""

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from bcn.data.clevr_like.render import render_scene
from bcn.data.clevr_like.scene import make_scene
from bcn.data.vqa.clevr import CLEVR_LIKE
from bcn.data.vqa.vocabulary import UNKNOWN
from bcn.errors import BcnError
from bcn.inference import DEFAULT_WEIGHTS
from bcn.inference.reasoner import EncodedQuestions, Reasoner
from bcn.web.mechanism import answer_scene
from bcn.web.rendered import pictures_for
from bcn.web.scenes import random_scene
from bcn.web.schema import SceneRequest

LISTED = "/api/weights lists the loaded ones"


class LoadedModels:
    """The reasoners that the server was started with, in that order."""

    def __init__(self, reasoners: Sequence[Reasoner]) -> None:
        self.reasoners = reasoners
        self._default_first = sorted(reasoners, key=lambda reasoner: reasoner.name != DEFAULT_WEIGHTS)

    def pictures(self, name: str | None) -> str:
        """The data set whose pictures suit the weights of this name, or without a name the first that read words."""
        for reasoner in self.reasoners:
            if name == reasoner.name or (name is None and reasoner.takes_words):
                return pictures_for(reasoner)
        if name is None:
            return CLEVR_LIKE
        raise BcnError(f"no weights{_called(name)} are loaded: {LISTED}")

    def of_family(self, family: str, name: str | None) -> list[Reasoner]:
        """All of a family, or the one with this name."""
        chosen = [
            reasoner for reasoner in self._default_first if reasoner.family == family and name in (None, reasoner.name)
        ]
        if not chosen:
            raise BcnError(f"no weights for {family}{_called(name)} are loaded: {LISTED}")
        return chosen

    def classifiers(self, name: str | None) -> list[Reasoner]:
        """All of Scaled-MNIST, or the one with this name, if it takes no questions."""
        named = [reasoner for reasoner in self.reasoners if not reasoner.takes_questions and reasoner.name == name]
        return named or self.of_family("scaled-mnist", name)

    def question_answerer(self, name: str | None) -> Reasoner:
        """The one with this name; without a name the one that `bcn ask` takes, or else the first."""
        for reasoner in self._default_first:
            if reasoner.takes_questions and name in (None, reasoner.name):
                return reasoner
        raise BcnError(f"no weights{_called(name)} that take questions are loaded: {LISTED}")


def warm_up(reasoners: Sequence[Reasoner]) -> None:
    """Answer once with every model and render once: no client waits for what is imported or allocated only then."""
    blank = np.zeros((75, 75, 3), np.uint8)
    for reasoner in reasoners:
        if reasoner.family == "sort-of-clevr" and reasoner.coding is not None:
            answer_scene(reasoner, SceneRequest.model_validate({"objects": random_scene(0)}))
        elif reasoner.takes_words:
            reasoner.answer_with_broadcast(blank, EncodedQuestions(np.full((1, 1), UNKNOWN), ["?"]))
        elif not reasoner.takes_questions:
            reasoner.find(blank)
    if any(reasoner.family == "clevr" for reasoner in reasoners):
        with suppress(BcnError):  # without the extra `render`
            render_scene(make_scene(0, split="val"), width=16, height=16)


def _called(name: str | None) -> str:
    return "" if name is None else f" called {name!r}"
