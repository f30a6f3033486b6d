"""Sort-of-CLEVR scenes of the page: made at random, drawn, and the questions about them.

A scene has 1 to 12 objects. A model of v1 names them by their colours, so that each has its own; for one of v2 two may
have the same, and are named by colour and shape. Objects in colours that no model was trained on are named by none, but
they are there to be counted and to be closest.

H x W pixels.
"""

from collections import Counter
from functools import cache
from typing import NamedTuple

import numpy as np

from bcn.data.sort_of_clevr import COLOURS, RGB, SHAPES, make_sort_of_clevr
from bcn.data.sort_of_clevr.drawing import DISC, OFFSET, WHITE
from bcn.data.sort_of_clevr.scene import SIDE
from bcn.errors import BcnError
from bcn.inference.coding import QuestionCoding
from bcn.inference.reasoner import EncodedQuestions
from bcn.web.schema import SceneObject

EXTRA = {
    "cyan": (0, 200, 220),
    "pink": (255, 130, 190),
    "purple": (130, 40, 170),
    "brown": (140, 80, 40),
    "black": (0, 0, 0),
    "teal": (0, 120, 110),
}
"""colours that no question names; drawn under the others"""
PAINTED = EXTRA | dict(zip(COLOURS, RGB, strict=True))
"""in the order in which objects are drawn: later colours cover earlier ones"""
ABOUT_ONE = 6
"""kinds of questions that name one object: unary and binary"""


class SceneQuestion(NamedTuple):
    kind: str
    objects: tuple[int, ...]
    """that it names, by their places in the scene"""


def random_scene(seed: int) -> list[SceneObject]:
    """The objects of one scene of the stream of Sort-of-CLEVR v1."""
    scenes = make_sort_of_clevr("sort-of-clevr-stream", "train", images=1).scenes([seed])
    columns = zip(COLOURS, scenes.x[0], scenes.y[0], scenes.shape[0], strict=True)
    return [
        SceneObject.model_validate({"colour": colour, "shape": SHAPES[shape], "x": int(x), "y": int(y)})
        for colour, x, y, shape in columns
    ]


def draw(objects: list[SceneObject]) -> np.ndarray:
    """The image (H, W, 3) of a scene."""
    image_P3 = np.full((SIDE**2, 3), WHITE, np.uint8)
    for each in sorted(objects, key=lambda each: list(PAINTED).index(each.colour)):
        image_P3[each.y * SIDE + each.x + (OFFSET[DISC] if each.shape == "circle" else OFFSET)] = PAINTED[each.colour]
    return image_P3.reshape(SIDE, SIDE, 3)


def to_questions(
    objects: list[SceneObject], sentences: list[str] | None, coding: QuestionCoding
) -> tuple[list[SceneQuestion], EncodedQuestions]:
    """The questions of these sentences, without them all that name one object; and what a model takes."""
    if len(coding.kinds) == ABOUT_ONE and len({each.colour for each in objects}) < len(objects):
        raise BcnError("two objects have the same colour: for these weights a scene has at most one of each colour")
    names = name_objects(objects)
    if not names:
        add = f"add one of {', '.join(COLOURS)}"
        raise BcnError(f"no object has a colour that questions name, or all of these look like another one: {add}")
    if sentences is None:
        questions = [
            SceneQuestion(kind, (place,))
            for kind in coding.kinds[:ABOUT_ONE]
            for place, name in sorted(names.items(), key=lambda item: item[1])
            if kind != "shape" or name < len(COLOURS)  # the name does not say it
        ]
    else:
        questions = [_to_question(objects, *coding.split(coding.from_sentence(each))) for each in sentences]
    numbers = [
        coding.number(coding.kinds.index(kind), *(names[place] for place in places)) for kind, places in questions
    ]
    return questions, EncodedQuestions(coding.bits[numbers], [_sentence(coding, number) for number in numbers])


def name_objects(objects: list[SceneObject]) -> dict[int, int]:
    """By place, the shortest name that no other object has: the colour, or where that is shared, colour and shape."""
    colours, looks = Counter(each.colour for each in objects), Counter((each.colour, each.shape) for each in objects)
    names = {}
    for place, each in enumerate(objects):
        if each.colour in COLOURS and looks[each.colour, each.shape] == 1:
            shared = colours[each.colour] > 1
            names[place] = COLOURS.index(each.colour) + len(COLOURS) * (1 + SHAPES.index(each.shape)) * shared
    return names


def _to_question(objects: list[SceneObject], kind: str, names: tuple[int, ...]) -> SceneQuestion:
    """Which objects a question means; one may be named by colour and shape where the colour would do."""
    places = tuple(_find(objects, name) for name in names)
    if len(set(places)) < len(places):
        raise BcnError("both names are those of one object: ask about two")
    return SceneQuestion(kind, places)


def _find(objects: list[SceneObject], name: int) -> int:
    shape, colour = divmod(name, len(COLOURS))
    what = f"{COLOURS[colour]} {SHAPES[shape - 1] if shape else 'object'}"
    found = [
        place
        for place, each in enumerate(objects)
        if each.colour == COLOURS[colour] and (not shape or each.shape == SHAPES[shape - 1])
    ]
    if not found:
        raise BcnError(f"there is no {what} in this scene: ask about one that is there")
    if len(found) > 1:
        raise BcnError(f"there is more than one {what} in this scene: ask about one that no other looks like")
    return found[0]


@cache
def _sentence(coding: QuestionCoding, number: int) -> str:
    return coding.to_sentence(coding.bits[number])
