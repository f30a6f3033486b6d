"""The public generator's ternary questions against its rules, written out one object at a time."""

import math
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from bcn.data.random import splitmix64
from bcn.data.registry import open_dataset
from bcn.data.sort_of_clevr import ANSWERS, LEGACY, make_sort_of_clevr
from bcn.data.sort_of_clevr.scene import scenes_legacy
from bcn.data.sort_of_clevr_v2.legacy import LEGACY_TERNARY, make_legacy_ternary

CHECKSUM = "c4ffa779c0adc023"
Point = tuple[int, int]


def angle(near: float, far: float, opposite: float) -> float:
    """In degrees by the law of cosines, NaN where rounding leaves the range of the arc cosine."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(np.rad2deg(np.arccos((near**2 + far**2 - opposite**2) / (2 * near * far))))


def reply(points: list[Point], first: int, second: int, kind: str) -> int:
    """The place of the answer among the ten."""
    one, two = points[first], points[second]
    others = [point for colour, point in enumerate(points) if colour not in (first, second)]
    if kind == "between":
        spans = [sorted((one[axis], two[axis])) for axis in (0, 1)]
        return 4 + sum(all(low <= other[axis] <= high for axis, (low, high) in enumerate(spans)) for other in others)
    if kind == "line":
        slope = (two[1] - one[1]) / ((two[0] - one[0]) + 1e-10)
        offset = one[1] - slope * one[0]
        return 0 if any(slope * x + offset - 12 <= y <= slope * x + offset + 12 for x, y in others) else 1
    counted = 0
    for other in others:
        ends = (two, other), (other, one), (one, two)
        a, b, c = np.sqrt([float((p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2) for p, q in ends])
        largest = max(angle(b, c, a), angle(a, c, b), angle(a, b, c))  # of a NaN, Python keeps the first alone
        counted += 90 <= largest < 180
    return 4 + counted


@pytest.fixture(scope="module")
def scenes() -> list[list[Point]]:
    made = scenes_legacy(splitmix64(splitmix64(0, 13), np.arange(400)))
    return [[(int(x), int(y)) for x, y in zip(*each, strict=True)] for each in zip(made.x, made.y, strict=True)]


def test_answers_are_those_of_the_rules(scenes: list[list[Point]]) -> None:
    dataset = make_legacy_ternary("test", images=400, questions="all")
    batch = dataset[np.arange(400)]
    assert batch.question is not None
    asked = set()
    for image, points in enumerate(scenes):
        for bits, answer in zip(batch.question[image, 36:].tolist(), batch.answer[image, 36:].tolist(), strict=True):
            first, second, kind = bits[:6].index(1), bits[6:12].index(1), bits[15:].index(1)
            assert bits[12:15] == [0, 0, 1]
            asked.add((first, second, kind))
            said = reply(points, first, second, ("between", "line", "obtuse")[kind])
            assert said == answer, (image, first, second, kind)
    assert asked == {(a, b, kind) for a in range(5) for b in range(5) for kind in range(3) if a != b}


def test_the_other_questions_are_those_of_legacy() -> None:
    batch = make_legacy_ternary("train", images=50)[np.arange(50)]
    assert batch.question is not None
    assert batch.kind is not None
    assert batch.question.shape == (50, 30, 18)
    assert (batch.kind[:, :10] < 3).all()
    assert ((batch.kind[:, 10:20] >= 3) & (batch.kind[:, 10:20] < 6)).all()
    assert (batch.kind[:, 20:] >= 6).all()
    every = make_legacy_ternary("test", images=50, questions="all")
    legacy = make_sort_of_clevr(LEGACY, "test", images=1, questions="all")
    legacy.generator.stream = splitmix64(0, 13)
    plain, ours = legacy.generator.samples(np.arange(50)), every[np.arange(50)]
    assert np.array_equal(plain.image, ours.image.numpy())
    assert np.array_equal(plain.answer, ours.answer[:, :36].numpy())


def test_checksum_and_sentences() -> None:
    dataset = open_dataset(LEGACY_TERNARY, "train", images=300)
    assert dataset.name == LEGACY_TERNARY
    assert dataset.checksum().startswith(CHECKSUM)
    batch = dataset[[0]]
    assert batch.question is not None
    sentences = [dataset.to_sentence(question) for question in batch.question[0]]
    assert sum("between the" in sentence or "obtuse" in sentence for sentence in sentences) == 10


def distance_to_segment(a: Point, b: Point, c: Point) -> float:
    along = ((c[0] - a[0]) * (b[0] - a[0]) + (c[1] - a[1]) * (b[1] - a[1])) / math.dist(a, b) ** 2
    along = min(max(along, 0), 1)
    return math.dist((a[0] + along * (b[0] - a[0]), a[1] + along * (b[1] - a[1])), c)


def test_the_faults_have_the_shares_that_the_specification_says(scenes: list[list[Point]]) -> None:
    page = " ".join((Path(__file__).parents[2] / "docs" / "reference" / "sort-of-clevr-v2.md").read_text().split())
    yes = wrong = total = in_row = missed = 0
    for points in scenes:
        for first in range(5):
            for second in set(range(5)) - {first}:
                a, b = points[first], points[second]
                others = [point for colour, point in enumerate(points) if colour not in (first, second)]
                said = reply(points, first, second, "line") == 0
                yes, total = yes + said, total + 1
                wrong += said != any(distance_to_segment(a, b, c) <= 12 for c in others)
                for c in others:
                    if (b[0] - a[0]) * (c[1] - a[1]) == (b[1] - a[1]) * (c[0] - a[0]):
                        in_row += 1
                        missed += reply([a, b, c], 0, 1, "obtuse") == 4
    assert f"`line` says yes to {round(100 * yes / total)} %" in page, (yes, total)
    assert f"{round(100 * wrong / total)} % of its answers" in page, wrong / total
    assert f"{missed} of {in_row} in the first 400 test scenes" in page, (missed, in_row)


def test_none_is_called_one() -> None:
    assert ANSWERS[4] == "1"
    batch = make_legacy_ternary("test", images=100, questions="all")[np.arange(100)]
    assert int((batch.answer[:, 36:56] == 4).sum()) > 500
    assert torch.equal(batch.answer[:, :36].min(), torch.tensor(0))
