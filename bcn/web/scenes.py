"""Sort-of-CLEVR scenes of the page: made at random, drawn, answered, and checked against the true answers.

H x W pixels, Q questions, K broadcast channels.
"""

from functools import cache
from typing import Any

import numpy as np

from bcn.data.sort_of_clevr import (
    COLOURS,
    KINDS,
    SHAPES,
    Scenes,
    answer_all,
    draw_scenes,
    from_sentence,
    make_sort_of_clevr,
    question_bits,
    to_sentence,
)
from bcn.errors import BcnError
from bcn.inference.broadcast import Broadcast
from bcn.inference.reasoner import EncodedQuestions, Reasoner
from bcn.web.schema import SceneObject, SceneRequest

RUNNERS_UP = 3
"""in the response, for each of the many answers about a scene"""


def random_scene(seed: int) -> list[SceneObject]:
    """The objects of one scene of the stream of Sort-of-CLEVR v1."""
    scenes = make_sort_of_clevr("sort-of-clevr-stream", "train", images=1).scenes([seed])
    columns = zip(COLOURS, scenes.x[0], scenes.y[0], scenes.shape[0], strict=True)
    return [
        SceneObject.model_validate({"colour": colour, "shape": SHAPES[shape], "x": int(x), "y": int(y)})
        for colour, x, y, shape in columns
    ]


def answer_scene(reasoner: Reasoner, request: SceneRequest) -> tuple[list[dict[str, Any]], Broadcast | None]:
    """The model's answers beside the true ones, and what its BCN broadcasts, from one forward pass."""
    scenes = to_scenes(request.objects)
    if request.questions is None:
        numbers = [number for number in range(36) if scenes.present[0, number % 6]]
    else:
        numbers = [_question_number(sentence, scenes) for sentence in request.questions]
    image_HW3, truth_36 = draw_scenes(scenes)[0].transpose(1, 2, 0), answer_all(scenes)[0]
    questions = EncodedQuestions(question_bits()[numbers], [_sentences()[number] for number in numbers])
    answers, broadcast = reasoner.answer_with_broadcast(image_HW3, questions)
    checked = [
        answer.to_dict(runners_up=RUNNERS_UP)
        | {
            "kind": KINDS[number // 6],
            "colour": COLOURS[number % 6],
            "truth": reasoner.answers[truth_36[number]],
        }
        for number, answer in zip(numbers, answers, strict=True)
    ]
    return checked, broadcast


def to_scenes(objects: list[SceneObject]) -> Scenes:
    """One scene as the data sets have it."""
    if len({each.colour for each in objects}) < len(objects):
        raise BcnError("two objects have the same colour: a scene has at most one of each colour")
    by_colour = {each.colour: each for each in objects}
    x, y, shape, present = np.zeros((4, 1, 6), dtype=np.int16)
    for number, colour in enumerate(COLOURS):
        if colour in by_colour:
            each = by_colour[colour]
            x[0, number], y[0, number], present[0, number] = each.x, each.y, 1
            shape[0, number] = SHAPES.index(each.shape)
    return Scenes(x, y, shape.astype(np.uint8), present.astype(bool))


@cache
def _sentences() -> tuple[str, ...]:
    """All 36 questions in English."""
    return tuple(map(to_sentence, question_bits()))


def _question_number(sentence: str, scenes: Scenes) -> int:
    number = int((question_bits() == from_sentence(sentence)).all(axis=1).argmax())
    if not scenes.present[0, number % 6]:
        raise BcnError(f"there is no {COLOURS[number % 6]} object in this scene: ask about one that is there")
    return number
