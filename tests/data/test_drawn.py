"""drawn-v1: answers are right by an oracle that reads the sentences, pictures show the scenes, targets fit."""

import re
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
import torch

from bcn.data.check import CHECKSUMS
from bcn.data.dataset import IGNORE_INDEX
from bcn.data.drawn import make_drawn
from bcn.data.drawn.dataset import VALUES
from bcn.data.drawn.scene import Scene, Thing
from bcn.data.registry import open_dataset
from bcn.data.vqa.vocabulary import UNKNOWN
from bcn.errors import BcnError

ALSO = {
    "disc": "circle", "disk": "circle", "dot": "circle", "box": "square", "rhombus": "diamond", "plus": "cross",
    "hoop": "ring", "ellipse": "oval", "bar": "rectangle", "turquoise": "cyan", "violet": "purple", "gray": "grey",
}  # fmt: skip
ANYTHING = {"thing", "object", "shape", "item", "figure", "letter", "placed"}
A = r"((?!\w*most |\w+est )(?:\w+ ){0,2}\w+)"
"""a description in a sentence"""
DESCRIBING = ("colour", "name", "closest", "furthest", "extreme")


def described(words: str, things: tuple[Thing, ...]) -> list[Thing]:
    """The things that fit every word of a description."""
    for word in words.split():
        single = next(
            (known for known in (*ALSO, *ANYTHING, *VALUES) if word in (known, f"{known}s", f"{known}es")), word
        )
        if single not in ANYTHING:
            things = tuple(thing for thing in things if ALSO.get(single, single) in (thing.name, thing.colour))
    return list(things)


def only(words: str, scene: Scene) -> Thing:
    (thing,) = described(words, scene.things)
    return thing


def away(one: Thing, other: Thing) -> float:
    return float(np.hypot(one.x - other.x, one.y - other.y))


def nearest(words: str, scene: Scene) -> Thing:
    named = only(words, scene)
    return min((thing for thing in scene.things if thing is not named), key=lambda thing: away(thing, named))


def yes(condition: bool) -> str:
    return "yes" if condition else "no"


ORACLES: dict[str, Callable[..., str]] = {
    rf"Is there a {A}": lambda scene, a: yes(bool(described(a, scene.things))),
    rf"How many {A} are there": lambda scene, a: str(len(described(a, scene.things))),
    rf"What colou?r is the {A}": lambda scene, a: only(a, scene).colour,
    rf"What is the (?={A})(\w+) (?:thing|object|item|figure)": lambda scene, _, a: only(a, scene).name,
    rf"Is the {A} to the left of the {A}": lambda scene, a, b: yes(only(a, scene).x < only(b, scene).x),
    rf"Is the {A} to the right of the {A}": lambda scene, a, b: yes(only(a, scene).x > only(b, scene).x),
    rf"Is the {A} above the {A}": lambda scene, a, b: yes(only(a, scene).y < only(b, scene).y),
    rf"Is the {A} below the {A}": lambda scene, a, b: yes(only(a, scene).y > only(b, scene).y),
    rf"What is (?:closest|nearest) to the {A}": lambda scene, a: nearest(a, scene).name,
    rf"What color is (?:closest|nearest) to the {A}": lambda scene, a: nearest(a, scene).colour,
    rf"Is the {A} bigger than the {A}": lambda scene, a, b: yes(only(a, scene).size > only(b, scene).size),
    r"What is the leftmost \w+": lambda scene: min(scene.things, key=lambda thing: thing.x).name,
    r"What colour is the topmost \w+": lambda scene: min(scene.things, key=lambda thing: thing.y).colour,
    rf"How many \w+ are below the {A}": lambda scene, a: str(sum(thing.y > only(a, scene).y for thing in scene.things)),
}


def test_answers_are_those_of_the_sentences() -> None:
    drawn, checked = make_drawn("train"), Counter[str]()
    for index in range(3000):
        scene = drawn.scene(index)
        for question in drawn.questions(index):
            for pattern, oracle in ORACLES.items():
                if match := re.fullmatch(pattern, question.text.removesuffix("?")):
                    assert oracle(scene, *match.groups()) == question.answer, question
                    checked[pattern] += 1
    assert {pattern: checked[pattern] for pattern in ORACLES if checked[pattern] < 5} == {}


def test_every_scene_keeps_its_things_apart_and_on_the_canvas() -> None:
    drawn = make_drawn("val")
    for index in range(300):
        scene = drawn.scene(index)
        for number, thing in enumerate(scene.things):
            assert thing.size / 2 <= thing.x <= scene.width - thing.size / 2
            assert thing.size / 2 <= thing.y <= scene.height - thing.size / 2
            assert all(away(thing, other) > (thing.size + other.size) / 2 for other in scene.things[:number])


def test_pictures_show_the_things_where_they_are() -> None:
    """At the centre of a full shape is its colour, give or take noise and JPEG; pixels of its own and of others'."""
    drawn, full = make_drawn("val", images=60), {"circle", "square", "diamond", "pentagon", "hexagon", "oval"}
    errors = []
    for index in range(60):
        scene, image = drawn.scene(index), drawn[[index]].image[0].numpy()
        for thing in scene.things:
            if thing.name in full:
                x, y = int(thing.x * 128 / scene.width), int(thing.y * 128 / scene.height)
                errors.append(np.abs(image[:, y, x].astype(int) - thing.rgb).mean())
    assert len(errors) > 50
    assert np.median(errors) < 8
    assert max(errors) < 45


def test_a_sample_follows_from_seed_split_and_index() -> None:
    one, other = make_drawn("train"), make_drawn("train", images=5)
    torch.testing.assert_close(one[[7, 3]].image[1], other[[3]].image[0], rtol=0, atol=0)
    assert one.questions(3) != make_drawn("val").questions(3)
    assert one.questions(3) != make_drawn("train", seed=1).questions(3)
    assert not set(one.order(0, seed=0)) & set(one.order(1, seed=0))


def test_words_and_answers_are_known() -> None:
    drawn = make_drawn("train")
    batch = drawn[list(range(100))]
    assert batch.question is not None
    assert not (batch.question == UNKNOWN).any()
    assert set(batch.answer.unique().tolist()) <= {IGNORE_INDEX, *range(len(drawn.answers))}


def test_words_of_a_trained_model() -> None:
    """With its words and answers, a model reads the same questions: other indices, unknown words marked."""
    drawn = open_dataset("drawn-v1", "val", images=20, words=["red", "is", "there", "a"], answers=["yes", "no"])
    batch = drawn[list(range(20))]
    assert batch.question is not None
    assert batch.question.max() == 5
    assert (batch.answer == -1).any()
    assert (batch.answer <= 1).all()


def test_targets_of_referent_supervision() -> None:
    drawn = make_drawn("train").referent_supervision(steps=3)
    batch = drawn[list(range(30))]
    assert batch.auxiliary is not None
    point, role, step = (batch.auxiliary[name] for name in ("point", "role", "step"))
    for row in range(30):
        scene = drawn.scene(row)
        expected = [(thing.x / scene.width, thing.y / scene.height) for thing in scene.things]
        torch.testing.assert_close(point[row, : len(expected)], torch.tensor(expected))
        ground = point[row, len(expected)].tolist()
        assert min(np.hypot(ground[0] - x, ground[1] - y) for x, y in expected) > 0.1
        assert point[row, len(expected) + 1 :].isnan().all()
        for column, question in enumerate(drawn.questions(row)):
            marked = role[row, column, :, 2].nonzero().flatten().tolist()
            assert marked == sorted(question.target)
            values = [VALUES[value - 3] for value in role[row, column, :, 3:].nonzero()[:, 1].add(3).tolist()]
            assert values == [question.answer] * (question.kind in DESCRIBING)
            named = step[row, column, :, 0, 0].nonzero().flatten().tolist()
            assert named == sorted(question.first or question.target)
            for later in (1, 2):
                assert step[row, column, :, later, 0].nonzero().flatten().tolist() == sorted(question.target)


def test_object_supervision_asks_where_things_are_and_what_they_are() -> None:
    drawn = make_drawn("train")
    asked = drawn.object_supervision((8, 8))
    batch, cells = asked[list(range(40))], Counter[tuple[int, int]]()
    assert batch.question is not None
    for row in range(40):
        scene = drawn.scene(row)
        about: dict[tuple[str, float, float], str] = {}
        for (x, y, kind), answer in zip(batch.question[row].tolist(), batch.answer[row].tolist(), strict=True):
            if answer != IGNORE_INDEX:
                about[asked.kinds[int(kind)], x, y] = asked.answers[answer]
        for (kind, x, y), answer in about.items():
            if kind == "exist":
                cell = int(8 * x), int(8 * y)
                cells[cell] += 1
                inside = [(8 * t.x // scene.width, 8 * t.y // scene.height) == cell for t in scene.things]
                assert (answer == "yes") == any(inside)
        for thing in scene.things:
            x, y = (float(np.float32(place)) for place in (thing.x / scene.width, thing.y / scene.height))
            assert (about["name", x, y], about["colour", x, y]) == (thing.name, thing.colour)
            low = 0.13 + int(about["size", x, y].split()[1]) * 0.21 / 8
            assert low - 1e-6 <= thing.size / min(scene.width, scene.height) <= low + 0.21 / 8 + 1e-6
        assert len(about) == 16 + 3 * len(scene.things)
    assert len(cells) == 64, "four images ask about every cell"


@pytest.mark.parametrize("split", ["val", "test"])
def test_checksum(split: str) -> None:
    assert make_drawn(split).checksum() == CHECKSUMS["drawn-v1"][split]


def test_what_there_is_not() -> None:
    with pytest.raises(BcnError, match="did you mean 'train'"):
        make_drawn("trian")
    with pytest.raises(BcnError, match="images=0"):
        make_drawn("train", images=0)
