"""The versions of clevr-like: the same scenes, and what is asked about them."""

from collections.abc import Callable
from typing import Any

from bcn.data.clevr_like import questions, questions_v2
from bcn.data.vqa.clevr import CLEVR_LIKE, CLEVR_LIKE_V2
from bcn.errors import did_you_mean

MakeQuestions = Callable[..., list[dict[str, Any]]]
GRAMMARS: dict[str, MakeQuestions] = {
    CLEVR_LIKE: questions.make_questions,
    CLEVR_LIKE_V2: questions_v2.make_questions,
}


def find_grammar(name: str) -> MakeQuestions:
    """What makes the questions of a version, a function of a scene, `seed` and `count`."""
    if name not in GRAMMARS:
        raise did_you_mean("grammar", name, GRAMMARS)
    return GRAMMARS[name]
