"""Auxiliary supervision of v2, with what a question refers to found once more: in words, object by object."""

import re
from fractions import Fraction

import numpy as np
import pytest
import torch

from bcn.data.dataset import IGNORE_INDEX, Batch
from bcn.data.registry import open_dataset
from bcn.data.sort_of_clevr_v2 import make_sort_of_clevr_v2
from bcn.data.sort_of_clevr_v2.dataset import SortOfClevrV2
from bcn.data.sort_of_clevr_v2.scene import Scenes
from bcn.data.sort_of_clevr_v2.supervision import OBJECT_ANSWERS, ROLES

COLOURS = ("red", "green", "blue", "orange", "gray", "yellow")
SHAPES = ("square", "circle")
COLOUR = f"({'|'.join(COLOURS)})"
HALF = Fraction(1, 2)
Thing = tuple[int, int, str, str]
"""x, y, colour, shape"""


def things(scenes: Scenes, row: int) -> list[Thing]:
    return [
        (int(x), int(y), COLOURS[colour], SHAPES[shape])
        for x, y, colour, shape, present in zip(*(np.asarray(part[row]) for part in _parts(scenes)), strict=True)
        if present
    ]


def _parts(scenes: Scenes) -> tuple[np.ndarray, ...]:
    return scenes.x, scenes.y, scenes.colour, scenes.shape, scenes.present


def named_in(sentence: str, scene: list[Thing]) -> list[int]:
    """The objects that a sentence names, in its order."""
    found = []
    for colour, shape in re.findall(rf"the {COLOUR} (object|one|square|circle)", sentence):
        (index,) = (
            index
            for index, thing in enumerate(scene)
            if thing[2] == colour and (shape in ("object", "one") or thing[3] == shape)
        )
        found.append(index)
    return found


def square(one: Thing, other: Thing) -> int:
    return (one[0] - other[0]) ** 2 + (one[1] - other[1]) ** 2


def distance_to_segment(point: Thing, a: Thing, b: Thing) -> float:
    """From the nearest of many points of the segment."""
    share = np.linspace(0, 1, 2001)
    x, y = a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])
    return float(np.hypot(point[0] - x, point[1] - y).min())


def largest_angle(points: list[Thing]) -> float:
    angles = []
    for corner in range(3):
        at, one, other = (np.array(points[(corner + step) % 3][:2], float) for step in range(3))
        u, v = one - at, other - at
        angles.append(np.degrees(np.arccos(np.clip(u @ v / np.linalg.norm(u) / np.linalg.norm(v), -1, 1))))
    return float(max(angles))


def targets_of(sentence: str, scene: list[Thing], named: list[int]) -> tuple[set[int], str]:
    """What a sentence looks for, and the family of its kind."""
    first, others = scene[named[0]], [index for index in range(len(scene)) if index not in named]
    if "closest" in sentence or "furthest" in sentence:
        choose = min if "closest" in sentence else max
        return {choose(others, key=lambda index: square(scene[index], first))}, "describe"
    if sentence.startswith("What is the shape"):
        return {named[0]}, "describe"
    if "on the left" in sentence:
        return ({named[0]} if first[0] < 37 else set()), "verify"
    if "above" in sentence:
        return ({named[0]} if first[1] < 37 else set()), "verify"
    if "same shape" in sentence:
        return {index for index, thing in enumerate(scene) if thing[3] == first[3]}, "count"
    a, b = first, scene[named[1]]
    if "box" in sentence:
        low, high = np.minimum(a[:2], b[:2]), np.maximum(a[:2], b[:2])
        inside = {index for index in others if (low < scene[index][:2]).all() and (scene[index][:2] < high).all()}
        return inside, "count"
    if "line" in sentence:
        return {index for index in others if distance_to_segment(scene[index], a, b) <= 4.01}, "verify"
    assert "obtuse" in sentence
    return {index for index in others if largest_angle([scene[index], a, b]) > 90.5}, "count"


def supervised(split: str, images: int, *, steps: int) -> tuple[SortOfClevrV2, Batch]:
    dataset = make_sort_of_clevr_v2("sort-of-clevr-v2", split, images=images).referent_supervision(steps=steps)
    assert dataset is not None
    return dataset, dataset[np.arange(images)]


def test_roles_and_steps_are_those_of_the_sentences() -> None:
    images, steps = 40, 2
    dataset, batch = supervised("train", images, steps=steps)
    assert batch.auxiliary is not None
    assert batch.question is not None
    scenes, kinds = dataset.scenes(np.arange(images)), set()
    role_BQTR, step_BQTS2 = batch.auxiliary["role"], batch.auxiliary["step"]
    for row in range(images):
        scene = things(scenes, row)
        for place, answer in enumerate(batch.answer[row].tolist()):
            role_TR, step_TS2 = role_BQTR[row, place], step_BQTS2[row, place]
            if answer == IGNORE_INDEX:
                assert not role_TR.any()
                assert not step_TS2.any()
                continue
            sentence = dataset.to_sentence(batch.question[row, place])
            named = named_in(sentence, scene)
            wanted, family = targets_of(sentence, scene, named)
            kinds.add(re.sub(COLOUR, "", sentence))
            roles = {(index, ROLES.index(f"named to {family}")) for index in named}
            roles |= {(index, ROLES.index("second")) for index in named[1:]}
            for index in wanted:
                role = {"verify": "found", "count": "counted", "describe": scene[index][3]}[family]
                roles.add((index, ROLES.index(role)))
            assert {tuple(pair) for pair in role_TR.nonzero().tolist()} == roles, sentence
            later = dict.fromkeys(wanted, 1.0)
            if "closest" in sentence or "furthest" in sentence:
                far = {index: square(scene[index], scene[named[0]]) ** 0.5 / 75 / 2**0.5 for index in range(len(scene))}
                later = {index: 1 - far[index] if "closest" in sentence else far[index] for index in far}
                del later[named[0]]
            expected = {(index, 0, which): 1.0 for which, index in enumerate(named)}
            expected |= {(index, 1, 0): share for index, share in later.items()}
            found = {tuple(place): float(step_TS2[tuple(place)]) for place in step_TS2.nonzero().tolist()}
            assert found == pytest.approx(expected), sentence
    assert len(kinds) >= 9


def test_points_are_the_objects_and_a_place_of_the_ground() -> None:
    images = 60
    dataset, batch = supervised("val", images, steps=0)
    assert batch.auxiliary is not None
    assert batch.auxiliary["step"].shape[3] == 0
    scenes = dataset.scenes(np.arange(images))
    for row, point_T2 in enumerate(batch.auxiliary["point"].numpy()):
        scene, picture = things(scenes, row), batch.image[row].permute(1, 2, 0).numpy()
        pixels = np.floor(point_T2[~np.isnan(point_T2).any(axis=1)] * 75).astype(int)
        assert [tuple(pixel) for pixel in pixels[:-1]] == [thing[:2] for thing in scene]
        x, y = pixels[-1]
        assert (picture[y - 3 : y + 4, x - 3 : x + 4] == 255).all()
        for (x, y), thing in zip(pixels, scene, strict=False):
            assert (picture[y, x] != 255).any(), thing


@pytest.mark.parametrize(("grid", "cell"), [((10, 10), Fraction(15, 2)), ((5, 5), Fraction(15))])
def test_object_supervision_asks_what_is_where(grid: tuple[int, int], cell: Fraction) -> None:
    images = make_sort_of_clevr_v2("sort-of-clevr-v2", "train", images=30)
    dataset = images.object_supervision(grid)
    assert dataset is not None
    batch, scenes, told = dataset[np.arange(30)], images.scenes(np.arange(30)), set()
    asked = set()
    assert batch.question is not None
    for row in range(30):
        scene = things(scenes, row)
        for (x, y, kind), answer in zip(batch.question[row].tolist(), batch.answer[row].tolist(), strict=True):
            if answer == IGNORE_INDEX:
                continue
            assert 0 <= x < 1 > y >= 0
            name, value = dataset.kinds[int(kind)], OBJECT_ANSWERS[answer]
            cells = [((thing[0] + HALF) // cell, (thing[1] + HALF) // cell) for thing in scene]
            if name == "exist":
                place = tuple(Fraction(round(4 * 75 * at), 4) // cell for at in (x, y))
                assert value == ("yes" if place in cells else "no")
                asked.add(place)
            else:
                (thing,) = (
                    thing for thing in scene if abs(thing[0] + 0.5 - 75 * x) + abs(thing[1] + 0.5 - 75 * y) < 0.1
                )
                column, line = ((position + HALF) / cell % 1 * 5 for position in thing[:2])
                expected = {"shape": thing[3], "colour": thing[2], "column": f"part {int(column)}"}
                assert value == (expected | {"row": f"part {int(line)}"})[name]
            told.add((name, value))
    assert len(told) == 2 + 2 + 6 + 5 + 5
    assert len(asked) == grid[0] * grid[1]


def test_supervision_leaves_images_and_answers() -> None:
    plain = make_sort_of_clevr_v2("sort-of-clevr-v2", "train", images=8)
    dataset, batch = supervised("train", 8, steps=1)
    assert dataset.checksum() == plain.checksum()
    assert not dataset.augments
    assert plain.augments
    assert torch.equal(batch.image, plain[np.arange(8)].image)
    assert torch.equal(batch.answer, plain[np.arange(8)].answer)


def test_the_stream_is_supervised_too() -> None:
    stream = open_dataset("sort-of-clevr-v2-stream-varied", "train")
    referents = stream.referent_supervision(steps=2)
    objects = stream.object_supervision((10, 10))
    assert referents is not None
    assert objects is not None
    index = stream.order(0, seed=3)[:4]
    assert torch.equal(referents[index].image, objects[index].image)
    assert (objects.order(0, seed=3) == stream.order(0, seed=3)).all()


def test_objects_without_an_image_have_no_supervision() -> None:
    states = make_sort_of_clevr_v2("sort-of-clevr-v2", "train", images=2, states=True)
    assert states.object_supervision((10, 10)) is None
    assert states.referent_supervision(steps=2) is None
