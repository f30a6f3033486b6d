"""Words that a model was not trained on."""

import pytest

from bcn.data.clevr_like.phrasing import WORDS
from bcn.data.vqa.synonyms import say_in_known_words
from bcn.data.vqa.vocabulary import tokenize

V1 = tuple({*WORDS, "exist"} - {";", "a", "an", "another", "anything", "does", "else", "it", "its"})
"""the words of clevr-like-v1"""


@pytest.mark.parametrize(
    ("question", "known", "said"),
    [
        ("What colour is the grey box?", WORDS, "what color is the gray cube"),
        ("How many little items are there?", WORDS, "how many small things are there"),
        ("Is there a huge turquoise ball?", WORDS, "is there a large cyan ball"),
        ("Is there anything else of the same colour?", V1, "is there any other thing of the same color"),
        ("Is there another cube?", V1, "is there any other cube"),
        ("Does the ball have the same size as an object?", V1, "do the ball have the same size as any object"),
        ("There is a ball; what color is it?", V1, "there is any ball what color is it"),
        ("What color is the dog?", WORDS, "what color is the dog"),
        ("What color?", ("what", "colour"), "what colour"),
    ],
)  # fmt: skip
def test_an_unknown_word_is_said_in_a_known_one(question: str, known: tuple[str, ...], said: str) -> None:
    assert " ".join(say_in_known_words(tokenize(question), known)) == said


def test_known_words_stay() -> None:
    words = list(WORDS)
    assert say_in_known_words(words, set(WORDS)) == words
