"""The words of drawn-v1: several ways to ask everything, with other names for shapes and colours.

In a template {a} and {b} are descriptions such as "red circle", {c} is a colour, {n} a description without a colour,
{one} and {many} a word for any object.
"""

from itertools import chain

from bcn.data.drawn.scene import COLOURS, LETTERS, SHAPES
from bcn.data.vqa.vocabulary import Vocabulary, tokenize

SYNONYMS = {
    "circle": ("disc", "disk", "dot"), "square": ("box",), "diamond": ("rhombus",), "cross": ("plus",),
    "ring": ("hoop",), "oval": ("ellipse",), "rectangle": ("bar",), "cyan": ("turquoise",), "purple": ("violet",),
    "grey": ("gray",),
}  # fmt: skip
THINGS = (("thing", "things"), ("object", "objects"), ("shape", "shapes"), ("item", "items"), ("figure", "figures"))
LEADS = ("", "", "", "", "", "in this picture, ", "in the image, ", "please tell me, ", "look, ", "say, ")

TEMPLATES: dict[str, tuple[str, ...]] = {
    "exist": (
        "Is there a {a}?", "Is a {a} there?", "Is there any {a} in the picture?", "Do you see a {a}?",
        "Does the image contain a {a}?", "Can a {a} be seen?", "Is any {one} a {a}?",
    ),
    "colour of": (
        "What colour is the {n}?", "What color is the {n}?", "What is the colour of the {n}?",
        "Which color has the {n}?", "The {n} has what colour?", "What color does the {n} have?",
        "In what colour is the {n} drawn?",
    ),
    "name of": (
        "What is the {c} {one}?", "Which {one} is {c}?", "What shape is the {c} {one}?", "What kind of {one} is {c}?",
        "The {c} {one} is what?", "What is drawn in {c}?", "Name the {c} {one}.",
    ),
    "count": (
        "How many {many} are there?", "How many {many} does the picture have?", "What number of {many} is there?",
        "Count the {many}.", "How many {many} do you see?", "How many {many} are in the image?",
    ),
    "left": ("left of", "to the left of", "on the left of", "on the left side of", "further left than", "west of"),
    "right": (
        "right of", "to the right of", "on the right of", "on the right side of", "further right than", "east of",
    ),
    "above": ("above", "over", "higher than", "higher up than", "on top of", "further up than", "north of"),
    "below": ("below", "under", "lower than", "beneath", "underneath", "further down than", "south of"),
    "side": (
        "Is the {a} {side} the {b}?", "Is the {a} placed {side} the {b}?", "Does the {a} lie {side} the {b}?",
        "Is it true that the {a} is {side} the {b}?", "The {a} is {side} the {b}, yes or no?", "Is {a} {side} {b}?",
    ),
    "count side": (
        "How many {many} are {side} the {a}?", "Count the {many} {side} the {a}.",
        "What number of {many} lies {side} the {a}?",
    ),
    "any side": (
        "Is anything {side} the {a}?", "Is there a {one} {side} the {a}?", "Does any {one} lie {side} the {a}?",
    ),
    "closest": ("closest to", "nearest to", "next to", "nearest", "least far from", "the direct neighbour of"),
    "furthest": ("furthest from", "farthest from", "most distant from", "farthest away from", "furthest away from"),
    "name by distance": (
        "What is {far} the {a}?", "Which {one} is {far} the {a}?", "What shape is {far} the {a}?",
        "What {one} is {far} the {a}?", "What is the {one} {far} the {a}?",
    ),
    "colour by distance": (
        "What colour is the {one} {far} the {a}?", "What color is {far} the {a}?",
        "Which colour has the {one} {far} the {a}?", "The {one} {far} the {a} has which color?",
    ),
    "bigger": ("bigger than", "larger than", "greater in size than"),
    "smaller": ("smaller than", "tinier than", "less big than"),
    "size": ("Is the {a} {size} the {b}?", "Does the {a} look {size} the {b}?", "Is {a} {size} {b}?"),
    "leftmost": ("leftmost", "most left"),
    "rightmost": ("rightmost", "most right"),
    "topmost": ("topmost", "highest", "uppermost"),
    "bottommost": ("bottommost", "lowest"),
    "biggest": ("biggest", "largest"),
    "smallest": ("smallest", "tiniest"),
    "name of extreme": ("What is the {most} {one}?", "Which {one} is the {most}?", "What shape is the {most} {one}?"),
    "colour of extreme": ("What colour is the {most} {one}?", "What color has the {most} {one}?"),
    "left half": ("in the left half", "on the left side", "on the left"),
    "right half": ("in the right half", "on the right side", "on the right"),
    "top half": ("in the upper half", "at the top", "in the top half"),
    "bottom half": ("in the lower half", "at the bottom", "in the bottom half"),
    "half": ("Is the {a} {half}?", "Is the {a} {half} of the picture?", "Does the {a} lie {half} of the image?"),
    "same colour": (
        "Does anything else have the colour of the {a}?", "Is there another {one} of the same color as the {a}?",
        "Do the {a} and another {one} share a colour?",
    ),
}  # fmt: skip


def plural(name: str) -> str:
    """
    >>> plural("square"), plural("box")
    ('squares', 'boxes')
    """
    return name + ("es" if name[-1] in "sx" else "s")


def all_words() -> Vocabulary:
    """Every word that a question may have."""
    texts = chain(
        chain.from_iterable(TEMPLATES.values()), LEADS, COLOURS, SHAPES, LETTERS, chain.from_iterable(THINGS),
        chain.from_iterable(SYNONYMS.values()), ["letter letters"],
    )  # fmt: skip
    several = [plural(name) for name in (*SHAPES, *chain.from_iterable(SYNONYMS.values()))]
    fields = str.maketrans({"{": " ", "}": " "})
    return Vocabulary.from_words(word for text in (*texts, *several) for word in tokenize(text.translate(fields)))
