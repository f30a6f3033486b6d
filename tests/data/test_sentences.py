"""Questions about Sort-of-CLEVR as sentences: what is understood, and what is refused."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bcn.data.sort_of_clevr import COLOURS, KINDS, from_sentence, question_bits, to_sentence
from bcn.errors import BcnError


@pytest.mark.parametrize("number", range(36))
def test_sentences_and_back(number: int) -> None:
    bits = question_bits()[number]
    sentence = to_sentence(bits)
    assert COLOURS[number % 6] in sentence
    for said in (sentence, sentence.upper(), sentence.strip("?").replace("object", "thing"), f"  {sentence}  "):
        np.testing.assert_array_equal(from_sentence(said), bits)
    assert to_sentence(torch.from_numpy(bits)) == sentence


@pytest.mark.parametrize(
    ("text", "kind", "colour"),
    [
        ("is the blue object on the left?", "left", "blue"),
        ("What is the shape of the object nearest to the grey one?", "closest", "gray"),
        ("which shape is farthest away from the red thing", "furthest", "red"),
        ("how many objects have the same shape as the green one?", "count", "green"),
        ("What shape is the yellow one?", "shape", "yellow"),
        ("Is orange in the upper half of the picture?", "above", "orange"),
    ],
)
def test_free_wording(text: str, kind: str, colour: str) -> None:
    np.testing.assert_array_equal(from_sentence(text), question_bits()[6 * KINDS.index(kind) + COLOURS.index(colour)])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "is the blue object on the right?",
        "is the blue object not on the left?",
        "is the blue object left of the red one?",
        "is there an object left of the red one?",
        "what is left of the red one?",
        "is the red object a square?",
        "what is the shape of the purple object?",
        "what is the colour of the red object?",
        "how many objects are red?",
        "number of red",
        "how many objects are on the left of the red one?",
        "what is the shape of the closest and of the furthest object to red?",
        "is the red object closest to the middle?",
    ],
)
def test_what_is_not_understood_is_said(text: str) -> None:
    with pytest.raises(BcnError, match="How many objects have the same shape"):
        from_sentence(text)


@given(st.text(max_size=60))
@settings(max_examples=200, deadline=None)
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        bits = from_sentence(text)
    except BcnError:
        return
    assert from_sentence(to_sentence(bits)).tolist() == bits.tolist()


def test_bits_without_meaning_are_refused() -> None:
    for bits in ([0.0] * 11, [1.0] * 11, [1.0, 0.0, 0.0], question_bits()[0] * 0.5):
        with pytest.raises(BcnError, match="11 numbers"):
            to_sentence(bits)
