"""The public generator's ternary questions, with their faults, about scenes of sort-of-clevr-legacy.

docs/reference/sort-of-clevr-v2.md lists the faults. Questions 0 to 35 are those of v1. Question 36 + n is ternary: of
kind 6 + n // 20, about two of the first five colours.

N scenes, K = 6 colours, P = 20 ordered pairs of the first five.
"""

from typing import ClassVar

import numpy as np
from torch import Tensor

from bcn.data.random import integers_below, splitmix64
from bcn.data.sort_of_clevr.drawing import draw_scenes
from bcn.data.sort_of_clevr.generated import SPLITS, GeneratedSplit, Samples, check_arguments
from bcn.data.sort_of_clevr.questions import (
    ANSWERS,
    LEGACY_OWN_DISTANCE,
    PER_HALF,
    QUESTION_WORD,
    answer_all,
    sample_with_replacement,
)
from bcn.data.sort_of_clevr.scene import COLOURS, Scenes, scenes_legacy
from bcn.data.sort_of_clevr_v2.questions import GROUPS, KINDS
from bcn.data.sort_of_clevr_v2.sampling import Questions
from bcn.data.sort_of_clevr_v2.sentences import SENTENCES

LEGACY_TERNARY = "sort-of-clevr-legacy-ternary"
SIZES, STREAMS = (9800, 1000, 200), (11, 12, 13)
YES, NO, COUNT = ANSWERS.index("yes"), ANSWERS.index("no"), ANSWERS.index("1")
"""a count of none has the place of "1" """
FIRST_P = np.repeat(np.arange(5), 4)
SECOND_P = np.tile(np.arange(4), 5) + (np.tile(np.arange(4), 5) >= FIRST_P)
GRACE, EPSILON = 12, 1e-10
RIGHT = 1.7225e-16
"""the largest cosine whose arc cosine rounds to 90 degrees or more"""


def question_bits() -> np.ndarray:
    """(96, 18) float32: six bits for a colour, six for a second one, three for the arity, three for the kind in it."""
    kind = np.concatenate([np.repeat(np.arange(6), 6), np.repeat(np.arange(6, 9), 20)])
    first = np.concatenate([np.tile(np.arange(6), 6), np.tile(FIRST_P, 3)])
    second = np.concatenate([np.full(36, 6), np.tile(SECOND_P, 3)])
    colour, three = np.eye(7, 6, dtype=np.float32), np.eye(3, dtype=np.float32)
    return np.concatenate([colour[first], colour[second], three[kind // 3], three[kind % 3]], axis=1)


def answer_ternary(scenes: Scenes) -> np.ndarray:
    """(N, 60) the index in ANSWERS of every ternary question, in float64 and in the order of the original's steps."""
    x_NK, y_NK = scenes.x.astype(np.float64), scenes.y.astype(np.float64)
    ax, ay, bx, by = (of[:, place, None] for place in (FIRST_P, SECOND_P) for of in (x_NK, y_NK))
    cx, cy = x_NK[:, None], y_NK[:, None]
    colour_K = np.arange(len(COLOURS))
    others_PK = (colour_K != FIRST_P[:, None]) & (colour_K != SECOND_P[:, None])
    inside = ((cx - ax) * (cx - bx) <= 0) & ((cy - ay) * (cy - by) <= 0)
    slope = (by - ay) / ((bx - ax) + EPSILON)
    height = (slope * cx) + (ay - (slope * ax))
    band = (height - GRACE <= cy) & (cy <= height + GRACE)
    a, b, c = (np.sqrt(dx**2 + dy**2) for dx, dy in ((bx - cx, by - cy), (cx - ax, cy - ay), (ax - bx, ay - by)))
    with np.errstate(divide="ignore", invalid="ignore"):  # of the two themselves, which are left out
        cosines = [
            (b * b + c * c - a * a) / (2 * b * c),
            (a * a + c * c - b * b) / (2 * a * c),
            (a * a + b * b - c * c) / (2 * a * b),
        ]
    least = np.minimum.reduce([np.where(abs(cosine) > 1, np.inf, cosine) for cosine in cosines])
    obtuse = (abs(cosines[0]) <= 1) & (least <= RIGHT) & (least > -1)
    counts = [COUNT + (of & others_PK).sum(axis=2) for of in (inside, obtuse)]
    line = np.where((band & others_PK).any(axis=2), YES, NO)
    return np.concatenate([counts[0], line, counts[1]], axis=1).astype(np.uint8)


class LegacyTernaryGenerator:
    """Samples of the public generator's rules: ten unary, ten binary and ten ternary questions, with replacement."""

    def __init__(self, seed: int, stream: int, questions: Questions) -> None:
        self.stream, self.questions = splitmix64(seed, stream), questions

    def samples(self, index: np.ndarray) -> Samples:
        sample_N = splitmix64(self.stream, index)
        scenes = scenes_legacy(sample_N)
        answer_N96 = np.concatenate(
            [answer_all(scenes, own_distance=LEGACY_OWN_DISTANCE), answer_ternary(scenes)], axis=1
        )
        if self.questions == "all":
            number_NQ = np.tile(np.arange(96, dtype=np.uint8), (len(sample_N), 1))
        else:
            word_NQ = splitmix64(sample_N[:, None], QUESTION_WORD + 2 * PER_HALF + np.arange(PER_HALF))
            ternary_NQ = (36 + integers_below(60, word_NQ)).astype(np.uint8)
            number_NQ = np.concatenate([sample_with_replacement(sample_N), ternary_NQ], axis=1)
        return Samples(draw_scenes(scenes), number_NQ, np.take_along_axis(answer_N96, number_NQ, axis=1))


class LegacyTernary(GeneratedSplit):
    """`images` samples of a split, drawn once and kept."""

    answers: tuple[str, ...] = ANSWERS
    kinds: tuple[str, ...] = KINDS
    question_groups: ClassVar[dict[str, slice]] = GROUPS
    question_bits = question_bits()
    kind_of_number = np.concatenate([np.arange(36) // 6, 6 + np.arange(60) // 20])

    def to_sentence(self, question_D: Tensor) -> str:
        number = int((self.question_bits == question_D.numpy()).all(axis=1).argmax())
        colours = [COLOURS[i % 6] for i in np.flatnonzero(self.question_bits[number, :12])]
        one, other = f"{colours[0]} one", f"{colours[-1]} one"
        kind = self.kinds[self.kind_of_number[number]]
        return SENTENCES[kind].format(object=f"{colours[0]} object", one=one, other=other)


def make_legacy_ternary(
    split: str, *, images: int | None = None, seed: int = 0, questions: Questions = "sampled"
) -> LegacyTernary:
    """Make a split of sort-of-clevr-legacy-ternary.

    >>> batch = make_legacy_ternary("test", images=3)[[0, 2]]
    >>> batch.question.shape, batch.answer.shape
    (torch.Size([2, 30, 18]), torch.Size([2, 30]))
    """
    check_arguments(LEGACY_TERNARY, (LEGACY_TERNARY,), split, 1 if images is None else images, seed, questions)
    number = SPLITS.index(split)
    generator = LegacyTernaryGenerator(seed, STREAMS[number], questions)
    return LegacyTernary(LEGACY_TERNARY, split, SIZES[number] if images is None else images, generator)
