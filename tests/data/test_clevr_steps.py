"""The steps of questions: the sets of objects on the way to the referents."""

from typing import Any

import pytest

from bcn.data.clevr_like.grammar import Link, Noun, program
from bcn.data.clevr_like.grammars import GRAMMARS
from bcn.data.clevr_like.scene import make_scene
from bcn.data.clevr_like.steps import find_steps
from bcn.data.clevr_like.supervision import find_referents

COLORS = ("red", "blue", "green", "red", "cyan")
"""of five objects in a row, from left to right"""
SCENE: dict[str, Any] = {
    "objects": [{"color": color, "shape": "cube", "size": "large", "material": "metal"} for color in COLORS],
    "relationships": {
        "left": [list(range(place)) for place in range(5)],
        "right": [list(range(place + 1, 5)) for place in range(5)],
    },
}


def thing(color: str = "", *links: Link) -> Noun:
    return Noun((("color", color),) if color else (), links)


BLUE, GREEN, CYAN, RED = (thing(color) for color in ("blue", "green", "cyan", "red"))
LEFT_OF_CYAN = thing("green", Link("left", CYAN))


@pytest.mark.parametrize(
    ("nodes", "steps"),
    [
        (program("count", RED), [[[0, 3]]] * 4),
        (program("count", thing("red", Link("right", BLUE))), [[[1]], [[3]], [[3]], [[3]]]),
        (program("exist", thing("", Link("left", LEFT_OF_CYAN))), [[[4]], [[2]], [[0, 1]], [[0, 1]]]),
        (program("count", thing("red", Link("left", LEFT_OF_CYAN))), [[[4]], [[2]], [[0]], [[0]]]),
        # two ways that meet, after a relation each: then the first alone
        (program("count", thing("", Link("right", BLUE), Link("left", CYAN))), [[[1], [4]], [[2, 3]], [[2, 3]]]),
        # a union that has to wait for one of its sides, and one that has not
        (program("count", thing("red", Link("right", BLUE)), GREEN, either=True), [[[1], [2]], [[2, 3]], [[2, 3]]]),
        (program("count", BLUE, GREEN, either=True), [[[1, 2]]] * 3),
        # two that are compared
        (program("less_than", thing("", Link("right", GREEN)), RED), [[[2], [0, 3]], [[3, 4], [0, 3]]]),
        (program("equal_size", thing("green", Link("left", CYAN)), BLUE), [[[4], [1]], [[2], [1]], [[2], [1]]]),
        (program("exist", thing("", Link("material", BLUE))), [[[1]], [[0, 2, 3, 4]]]),
    ],
)
def test_steps_of_one_program_of_each_form(nodes: Any, steps: list[list[list[int]]]) -> None:
    assert find_steps(nodes, SCENE, len(steps)) == steps


@pytest.mark.parametrize("grammar", GRAMMARS)
def test_after_three_relations_they_are_the_referents(grammar: str) -> None:
    later = 0
    for index in range(12):
        scene = make_scene(index)
        for question in GRAMMARS[grammar](scene):
            *first, last = find_steps(question["program"], scene, 4)
            assert last == find_referents(question["program"], scene)
            later += first[1] != last
    assert later >= 5
