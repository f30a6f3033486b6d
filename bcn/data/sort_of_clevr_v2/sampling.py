"""Which questions are asked: up to four of each kind, or all that are clear.

N scenes, K objects, P pairs of them, L places: the objects or pairs that a question of a kind may be about.
"""

from typing import Literal, NamedTuple

import numpy as np

from bcn.data.random import splitmix64
from bcn.data.sort_of_clevr.generated import NO_ANSWER
from bcn.data.sort_of_clevr_v2.answers import Answers, answer_scenes, pair_places
from bcn.data.sort_of_clevr_v2.questions import (
    KINDS,
    NO,
    PADDING,
    ZERO,
    name_objects,
    number_question,
)
from bcn.data.sort_of_clevr_v2.scene import Scenes

Questions = Literal["sampled", "all"]
PER_KIND = 4
KEY_WORD, KEYS_PER_KIND = 1024, 100
PLACE_BITS = np.uint64(8)
"""low bits of a key that are replaced by the place; the next one says in which order the objects of a pair are named"""
PRIORITY_BIT = np.uint64(62)
"""the first of the two high bits that are replaced by a priority"""
BALANCED = {KINDS.index("between"): ZERO, KINDS.index("line"): NO}
"""kinds with one answer that is much more common than the others: half of the questions are to have another one"""


class Asked(NamedTuple):
    number: np.ndarray
    """(N, Q) uint16, PADDING where a scene has fewer questions than others"""
    answer: np.ndarray
    """(N, Q) uint8, NO_ANSWER there"""


def ask(sample_N: np.ndarray, scenes: Scenes, questions: Questions) -> Asked:
    """The questions about each scene and their answers, in the order of the kinds."""
    name_NK = name_objects(scenes)
    numbers, answers = [], []
    for arity, part in enumerate(answer_scenes(scenes)):
        for kind in range(3 * arity, 3 * arity + 3):
            number_NL, answer_NL = _ask_kind(sample_N, kind, name_NK, part, questions)
            numbers.append(number_NL)
            answers.append(answer_NL)
    number_NQ, answer_NQ = np.concatenate(numbers, axis=1), np.concatenate(answers, axis=1)
    if questions == "all":  # the questions first, then the padding
        order_NQ = np.argsort(number_NQ == PADDING, axis=1, kind="stable")
        number_NQ, answer_NQ = (np.take_along_axis(of_NQ, order_NQ, axis=1) for of_NQ in (number_NQ, answer_NQ))
    return Asked(number_NQ, answer_NQ)


def _ask_kind(
    sample_N: np.ndarray, kind: int, name_NK: np.ndarray, part: Answers, questions: Questions
) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of the questions of a kind, and their answers; the sampled ones by rising key, all by place."""
    answer_NL, clear_NL = part.answer[kind % 3].T, part.clear[kind % 3].T
    place_NL = np.broadcast_to(np.arange(clear_NL.shape[1]), clear_NL.shape)
    word_NL = splitmix64(sample_N[:, None], KEY_WORD + KEYS_PER_KIND * kind + place_NL[:1])
    if questions == "sampled":
        key_NL = _keys(word_NL, answer_NL, clear_NL, BALANCED.get(kind))
        key_NL.sort(axis=1)
        place_NL = (key_NL[:, :PER_KIND] & _ones(PLACE_BITS)).astype(np.int64)
        answer_NL, clear_NL, word_NL = (
            np.take_along_axis(of_NL, place_NL, axis=1) for of_NL in (answer_NL, clear_NL, word_NL)
        )
    first_NL, second = place_NL, None
    if kind >= 6:
        pair_2P = np.stack(pair_places(name_NK.shape[1]))
        swap_NL = (word_NL >> PLACE_BITS & np.uint64(1)).astype(np.int64)
        first_NL, second = pair_2P[swap_NL, place_NL], pair_2P[1 - swap_NL, place_NL]
    names = [np.take_along_axis(name_NK, of, axis=1).astype(np.int64) for of in (first_NL, second) if of is not None]
    number_NL = np.where(clear_NL, number_question(kind, *names), PADDING).astype(np.uint16)
    answer_NL = np.where(clear_NL, answer_NL, NO_ANSWER).astype(np.uint8)
    missing = max(0, PER_KIND - number_NL.shape[1]) if questions == "sampled" else 0
    return (
        np.pad(number_NL, ((0, 0), (0, missing)), constant_values=PADDING),
        np.pad(answer_NL, ((0, 0), (0, missing)), constant_values=NO_ANSWER),
    )


def _keys(word_NL: np.ndarray, answer_NL: np.ndarray, clear_NL: np.ndarray, common: int | None) -> np.ndarray:
    """Keys, of which the smallest are asked: what is not clear comes last, and two with a rarer answer come first."""
    key_NL = word_NL & (_ones(PRIORITY_BIT) ^ _ones(PLACE_BITS)) | np.arange(word_NL.shape[1], dtype=np.uint64)
    priority_NL = np.where(clear_NL, np.uint64(1), np.uint64(3))
    if common is not None and word_NL.shape[1] > 2:
        rare_NL = clear_NL & (answer_NL != common)
        second_N1 = np.partition(np.where(rare_NL, key_NL, _ones(np.uint64(64))), 1, axis=1)[:, 1:2]
        priority_NL[rare_NL] = 2
        priority_NL[rare_NL & (key_NL <= second_N1)] = 0
    return key_NL | priority_NL << PRIORITY_BIT


def _ones(bits: np.uint64) -> np.uint64:
    """The lowest bits."""
    return np.uint64(2 ** int(bits) - 1)
