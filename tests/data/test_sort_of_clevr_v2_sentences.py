"""Questions of v2 as sentences: there and back for all of them, and what is refused."""

import numpy as np
import pytest

from bcn.data.sort_of_clevr_v2 import KINDS, from_sentence, question_bits, to_sentence
from bcn.data.sort_of_clevr_v2.questions import PADDING, number_question
from bcn.errors import BcnError


def meaningful() -> list[np.ndarray]:
    """The bits of every question that can be asked."""
    bits = question_bits()
    asked = []
    for kind in range(9):
        for first in range(18):
            if kind >= 6:
                asked += [bits[number_question(kind, first, second)] for second in range(18) if second != first]
            elif kind or first < 6:
                asked.append(bits[number_question(kind, first)])
    return asked


def test_every_question_there_and_back() -> None:
    questions = meaningful()
    sentences = [to_sentence(question) for question in questions]
    assert len(set(sentences)) == len(sentences) == 6 + 5 * 18 + 3 * 18 * 17
    for question, sentence in zip(questions, sentences, strict=True):
        assert np.array_equal(from_sentence(sentence), question), sentence


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("is the GREY thing at the top", "Is the gray object above the middle?"),
        ("Is red above the middle line?", "Is the red object above the middle?"),
        ("nearest shape to the blue circle", "What is the shape of the object closest to the blue circle?"),
        ("what shape is red", "What is the shape of the red object?"),
        ("number of objects with the same shape as yellow", "How many objects have the same shape as the yellow one?"),
        (
            "how many others are inside the rectangle between red and the green square?",
            "How many objects are in the box between the red one and the green square?",
        ),
        (
            "is any other thing on the straight segment between blue and orange",
            "Is there an object on the line between the blue one and the orange one?",
        ),
        (
            "count the objects that make an obtuse triangle with the red circle and the red square",
            "How many objects form an obtuse triangle with the red circle and the red square?",
        ),
    ],
)
def test_words_are_free(text: str, sentence: str) -> None:
    assert to_sentence(from_sentence(text)) == sentence


@pytest.mark.parametrize(
    "text",
    [
        "",
        "is it left?",
        "Is there an object left of the red one?",
        "Is the red object on the right?",
        "Is the red object not on the left?",
        "Is the red object left of the blue one?",
        "What is the shape of the red square?",
        "Is the green object on the line between the red one and the blue one?",
        "Is there an object on the line between the red one and the red one?",
        "How many objects are on the line between the red one and the blue one?",
        "Is there an object in the box between the red one and the blue one?",
        "How many squares are in the box between the red one and the blue one?",
        "How many objects are in the box between the red one and the square?",
        "How many objects form an acute triangle with the red one and the blue one?",
        "How many objects form an obtuse triangle with the red one?",
        "How many objects are red?",
        "What is the shape of the purple object?",
    ],
)
def test_what_is_no_question_of_ours_is_refused(text: str) -> None:
    with pytest.raises(BcnError, match=r"cannot understand .* like this: What is the shape of the red object"):
        from_sentence(text)


@pytest.mark.parametrize(
    "bits",
    [
        np.zeros(22),
        np.ones(22),
        np.zeros(11),
        question_bits()[number_question(KINDS.index("line"), 3)],
        question_bits()[number_question(KINDS.index("line"), 3, 3)],
        question_bits()[number_question(KINDS.index("left"), 3, 4)],
        question_bits()[PADDING],
    ],
)
def test_bits_without_meaning_are_refused(bits: np.ndarray) -> None:
    with pytest.raises(BcnError, match="has no meaning: give 22 numbers"):
        to_sentence(bits)
