"""Sort-of-CLEVR v2 against oracles that share no code with it: the pixels themselves, and a plain loop in Python."""

import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch

from bcn.data.dataset import IGNORE_INDEX, Batch
from bcn.data.random import splitmix64
from bcn.data.registry import open_dataset
from bcn.data.sort_of_clevr_v2 import (
    ANSWERS,
    BY_OBJECTS,
    KINDS,
    V2,
    V2_STREAM,
    V2_VARIED,
    SortOfClevrV2Stream,
    make_sort_of_clevr_v2,
    to_sentence,
)
from bcn.data.sort_of_clevr_v2.answers import answer_scenes
from bcn.data.sort_of_clevr_v2.questions import name_objects
from bcn.data.sort_of_clevr_v2.reference import make_batch
from bcn.data.sort_of_clevr_v2.sampling import Questions
from bcn.data.sort_of_clevr_v2.sentences import SENTENCES
from bcn.errors import BcnError

SEEN_COLOURS = {
    "red": (255, 0, 0),
    "green": (0, 255, 0),
    "blue": (0, 0, 255),
    "orange": (255, 156, 0),
    "gray": (128, 128, 128),
    "yellow": (255, 255, 0),
}
CHECKSUMS = {
    V2: "5000ebc411ab678a9b933dcecb32b32f5b78d490694b1733080720ab37c31527",
    V2_STREAM: "092f62c8debfadfc52c7a0d306ed82fe2b2d66a5f52e757899adc6c4f36e9572",
    V2_VARIED: "f07d800ff9448c38cb5301426fcb5b2d5dba093c16c689a2c39aca5c4f9d2a08",
}
"""of the first 1,000 samples for training with seed 0; if one of them changes, the version needs a new name"""

Blob = tuple[str, str, float, float]
"""colour, shape, x and y of what is seen"""


def look(image: np.ndarray) -> list[Blob]:
    """What a careful eye finds in an exact picture: every patch of one colour, by its extent and its corners."""
    seen: list[Blob] = []
    for colour, rgb in SEEN_COLOURS.items():
        left = {(x, y) for y, x in np.argwhere((image == np.reshape(rgb, (3, 1, 1))).all(axis=0)).tolist()}
        while left:
            patch, border = set(), [left.pop()]
            while border:
                x, y = border.pop()
                patch.add((x, y))
                around = {(x + dx, y + dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1)} & left
                left -= around
                border += around
            x0, x1, y0, y1 = (f(p[axis] for p in patch) for axis in (0, 1) for f in (min, max))
            assert (x1 - x0, y1 - y0) == (10, 10)
            assert len(patch) in (121, 81)
            seen.append((colour, "square" if (x0, y0) in patch else "circle", (x0 + x1) / 2, (y0 + y1) / 2))
    assert (image == 255).all(axis=0).sum() == 75 * 75 - sum(121 if blob[1] == "square" else 81 for blob in seen)
    return seen


def refer(seen: list[Blob], bits: list[float]) -> Blob:
    """The one object that eight bits name."""
    (colour,) = [name for name, bit in zip(SEEN_COLOURS, bits[:6], strict=True) if bit]
    shapes = [name for name, bit in zip(("square", "circle"), bits[6:], strict=True) if bit]
    (it,) = [blob for blob in seen if blob[0] == colour and blob[1] in (shapes or ("square", "circle"))]
    return it


def angle(at: Blob, one: Blob, other: Blob) -> float:
    """In degrees, from the directions in which two others are seen."""
    directions = [math.atan2(b[3] - at[3], b[2] - at[2]) for b in (one, other)]
    between = abs(directions[0] - directions[1])
    return math.degrees(min(between, 2 * math.pi - between))


def distance_to_segment(a: Blob, b: Blob, c: Blob) -> float:
    """The least distance to any of many points of it."""
    steps = np.linspace(0, 1, 2001)
    return float(np.hypot(a[2] + steps * (b[2] - a[2]) - c[2], a[3] + steps * (b[3] - a[3]) - c[3]).min())


def reply(seen: list[Blob], kind: str, it: Blob, second: Blob | None) -> str:
    """Answer a question from what is seen."""
    others = [blob for blob in seen if blob not in (it, second)]
    away = {blob: math.hypot(blob[2] - it[2], blob[3] - it[3]) for blob in others}
    if kind == "shape":
        return it[1]
    if kind in ("left", "above"):
        return "yes" if (it[2] if kind == "left" else it[3]) + 0.5 < 75 / 2 else "no"
    if kind == "closest":
        return min(away, key=away.__getitem__)[1]
    if kind == "furthest":
        return max(away, key=away.__getitem__)[1]
    if kind == "count":
        return str([blob[1] for blob in seen].count(it[1]))
    assert second is not None
    if kind == "between":
        (left, right), (top, bottom) = sorted((it[2], second[2])), sorted((it[3], second[3]))
        return str(sum(left < x < right and top < y < bottom for _, _, x, y in others))
    if kind == "line":
        return "yes" if any(distance_to_segment(it, second, c) < 6 for c in others) else "no"
    angles = [max(angle(it, second, c), angle(second, it, c), angle(c, it, second)) for c in others]
    return str(sum(of > 90 for of in angles))


def asked(batch: Batch, image: int) -> list[tuple[str, list[float], list[float], str]]:
    """Kind, bits of the first and the second object, and answer of each question about an image."""
    assert batch.question is not None
    questions = []
    for bits, answer in zip(batch.question[image].tolist(), batch.answer[image].tolist(), strict=True):
        if answer == IGNORE_INDEX:
            assert not any(bits)
            continue
        arity, subtype = bits[16:19].index(1), bits[19:].index(1)
        assert sum(bits[16:19]) == sum(bits[19:]) == sum(bits[:6]) == 1
        assert sum(bits[8:14]) == (arity == 2)
        questions.append((KINDS[3 * arity + subtype], bits[:8], bits[8:16], ANSWERS[answer]))
    return questions


@pytest.mark.parametrize("questions", ["sampled", "all"])
@pytest.mark.parametrize("objects", range(1, 13))
def test_pixels_answer_every_question(objects: int, questions: Questions) -> None:
    images = 40
    dataset = make_sort_of_clevr_v2(V2, "test", images=images, objects=objects, questions=questions, seed=3)
    assert dataset.name == BY_OBJECTS[objects]
    batch = dataset[np.arange(images)]
    kinds = set()
    for image in range(images):
        seen = look(batch.image[image].numpy())
        assert len(seen) == objects
        for kind, first, second, answer in asked(batch, image):
            it, other = refer(seen, first), refer(seen, second) if any(second) else None
            assert reply(seen, kind, it, other) == answer, (image, kind, it, other)
            assert not any(first[6:]) or sum(blob[0] == it[0] for blob in seen) == 2  # the shortest name
            kinds.add(kind)
    missing = {1: {"closest", "furthest", "between", "line", "obtuse"}, 12: {"shape"}}
    assert kinds == set(KINDS) - missing.get(objects, set())


def move(seen: list[Blob], shift: np.ndarray) -> list[Blob]:
    return [(c, s, x + dx, y + dy) for (c, s, x, y), (dx, dy) in zip(seen, shift.tolist(), strict=True)]


@pytest.mark.parametrize("objects", [3, 6, 8, 12])
def test_answers_hold_when_every_centre_is_moved_by_a_quarter_of_a_pixel(objects: int) -> None:
    """Which is by half a pixel against each other; a margin that is too small would show here."""
    batch = make_sort_of_clevr_v2(V2, "val", images=60, objects=objects, questions="all")[np.arange(60)]
    random = np.random.default_rng(0)
    for image in range(60):
        seen = look(batch.image[image].numpy())
        for _ in range(4):
            moved = move(seen, random.choice([-0.25, 0.25], size=(objects, 2)))
            for kind, first, second, answer in asked(batch, image):
                it, other = refer(moved, first), refer(moved, second) if any(second) else None
                assert reply(moved, kind, it, other) == answer, (image, kind)


@pytest.mark.parametrize("objects", [(2, 8), (1, 12), (1, 1), (7, 7), (11, 11), (12, 12)])
def test_the_plain_loop_gives_the_same_samples(objects: tuple[int, int]) -> None:
    ours = make_sort_of_clevr_v2(V2, "test", images=150, seed=11, objects=objects)[np.arange(150)]
    plain = make_batch(int(splitmix64(11, 9)), range(150), objects=objects)
    for part in ("image", "question", "answer", "kind"):
        assert torch.equal(getattr(ours, part), getattr(plain, part)), part


def test_scenes_keep_their_rules_as_seen_in_the_pixels() -> None:
    batch = make_sort_of_clevr_v2(V2, "train", images=200, objects=(1, 12))[np.arange(200)]
    numbers, columns = set(), set()
    for image in batch.image.numpy():
        seen = look(image)
        numbers.add(len(seen))
        columns |= {blob[2] for blob in seen}
        for a, b in combinations(seen, 2):
            assert max(abs(a[2] - b[2]), abs(a[3] - b[3])) >= (12 if a[0] == b[0] else 11)
        assert all(5 <= place <= 69 and place != 37 for blob in seen for place in blob[2:])
        of_colour = [[blob[0] for blob in seen].count(colour) for colour in SEEN_COLOURS]
        assert max(of_colour) - min(of_colour) <= 1
        named = [b for b in seen if not any(c[:2] == b[:2] for c in seen if c is not b)]
        assert len(named) >= min(2, len(seen))
    assert numbers == set(range(1, 13))
    assert columns == set(range(5, 70)) - {37}


@pytest.mark.parametrize("version", CHECKSUMS)
def test_checksum_of_the_first_thousand_samples(version: str) -> None:
    assert open_dataset(version, "train", images=1000).checksum() == CHECKSUMS[version]


def test_a_batch_mixes_numbers_of_objects() -> None:
    dataset = make_sort_of_clevr_v2(V2, "train", images=700)
    counts = np.bincount(dataset.scenes(np.arange(700)).present.sum(axis=1))
    assert len(counts) == 9
    assert (counts[:2] == 0).all()
    assert abs(counts[2:] - 100).max() < 4 * math.sqrt(100)
    batch = dataset[[7, 3, 3]]
    assert (batch.image.shape, batch.image.dtype) == ((3, 3, 75, 75), torch.uint8)
    assert batch.question is not None
    assert batch.kind is not None
    assert (batch.question.shape, batch.question.dtype) == ((3, 36, 22), torch.float32)
    assert (batch.answer.shape, batch.answer.dtype) == ((3, 36), torch.int64)
    assert torch.equal(batch.image[1], batch.image[2])
    assert dataset[np.zeros(0, dtype=int)].answer.shape == (0, 36)


def test_sampled_questions_are_some_of_all() -> None:
    every = make_sort_of_clevr_v2(V2, "val", images=50, objects=8, questions="all")[np.arange(50)]
    sampled = make_sort_of_clevr_v2(V2, "val", images=50, objects=8)[np.arange(50)]
    assert torch.equal(every.image, sampled.image)
    for image in range(50):
        all_of = [(kind, *map(tuple, parts), answer) for kind, *parts, answer in asked(every, image)]
        some = [(kind, *map(tuple, parts), answer) for kind, *parts, answer in asked(sampled, image)]
        assert set(some) <= set(all_of)
        assert len(set(some)) == len(some)
        for kind in KINDS:
            count = sum(question[0] == kind for question in some)
            assert count == min(4, sum(question[0] == kind for question in all_of))
            rare = [question for question in all_of if question[0] == kind and question[-1] not in ("0", "no")]
            if kind in ("between", "line"):
                assert sum(question in rare for question in some) >= min(2, len(rare))


def test_both_orders_of_naming_occur() -> None:
    batch = make_sort_of_clevr_v2(V2, "val", images=300, objects=2)[np.arange(300)]
    scenes = make_sort_of_clevr_v2(V2, "val", images=1, objects=2).scenes(np.arange(300))
    assert batch.question is not None
    first = batch.question[:, 24, :6].argmax(dim=1).numpy() == scenes.colour[:, 0]
    assert abs(first.mean() - 0.5) < 4 * 0.5 / math.sqrt(300)


def test_the_curriculum_is_the_unary_questions() -> None:
    widths: dict[Questions, int] = {"sampled": 12, "all": 24}
    for questions, width in widths.items():
        dataset = make_sort_of_clevr_v2(V2, "train", images=30, questions=questions)
        batch = dataset[np.arange(30)]
        easy = dataset.curriculum(batch)
        assert batch.kind is not None
        assert easy.kind is not None
        assert easy.answer.shape == (30, width)
        asked_easy = easy.answer >= 0
        assert (easy.kind[asked_easy] < 3).all()
        assert asked_easy.sum() == ((batch.answer >= 0) & (batch.kind < 3)).sum()


def test_augmented_images_answer_their_questions() -> None:
    dataset = make_sort_of_clevr_v2(V2, "train", images=80)
    batch = dataset.augment(dataset[np.arange(80)], torch.Generator().manual_seed(0))
    assert not torch.equal(batch.image, dataset[np.arange(80)].image)
    for image in range(80):
        seen = look(batch.image[image].numpy())
        for kind, first, second, answer in asked(batch, image):
            it, other = refer(seen, first), refer(seen, second) if any(second) else None
            assert reply(seen, kind, it, other) == answer, (image, kind)


def test_the_stream_is_a_function_of_seed_and_index() -> None:
    stream = make_sort_of_clevr_v2(V2_STREAM, "train", images=50, seed=3)
    assert isinstance(stream, SortOfClevrV2Stream)
    index = np.array([2**40 + 5, 0, 17, 2**62, 3, 17])
    together = stream[index]
    for part in ("image", "question", "answer", "kind"):
        assert torch.equal(getattr(together, part), torch.cat([getattr(stream[[i]], part) for i in index]))
    long = stream[np.arange(700)]  # more than are made at a time
    assert torch.equal(long.image[400:450], stream[np.arange(400, 450)].image)
    assert (stream.order(1, seed=0) == np.arange(50, 100)).all()
    test = make_sort_of_clevr_v2(V2_STREAM, "test", images=20)
    assert test.checksum() == make_sort_of_clevr_v2(V2, "test", images=20).checksum()


@pytest.mark.parametrize("objects", [0, 13, (0, 3), (5, 4), (3, 13)])
def test_numbers_of_objects_that_no_scene_has_are_refused(objects: int | tuple[int, int]) -> None:
    with pytest.raises(BcnError, match="a scene of v2 has 1 to 12 objects"):
        make_sort_of_clevr_v2(V2, "test", images=1, objects=objects)


def test_wrong_names_are_answered() -> None:
    with pytest.raises(BcnError, match="did you mean 'sort-of-clevr-v2-stream'"):
        make_sort_of_clevr_v2("sort-of-clevr-v2-steam", "train")
    with pytest.raises(BcnError, match="split"):
        make_sort_of_clevr_v2(V2, "dev")


def test_every_question_has_a_sentence() -> None:
    dataset = make_sort_of_clevr_v2(V2, "val", images=3)
    batch = dataset[[0]]
    assert batch.question is not None
    assert dataset.to_sentence(batch.question[0, 0]) == to_sentence(batch.question[0, 0])


def test_the_specification_says_the_same() -> None:
    page = " ".join((Path(__file__).parents[2] / "docs" / "reference" / "sort-of-clevr-v2.md").read_text().split())
    assert all(checksum in page for checksum in CHECKSUMS.values())
    dataset = make_sort_of_clevr_v2(V2, "train", images=1)
    scene, seen = dataset.scenes([0]), look(dataset[[0]].image[0].numpy())
    number = scene.present[0].sum()
    centres = list(zip(scene.x[0, :number], scene.y[0, :number], strict=True))
    assert ", ".join(f"({x}, {y})" for x, y in centres) in page
    by_place = {(x, y): f"{colour} {shape}" for colour, shape, x, y in seen}
    assert ", ".join(by_place[x, y] for x, y in centres) in page
    stream = splitmix64(0, 7)
    sample = splitmix64(stream, 0)
    assert all(f"{int(word):X}" in page for word in (stream, sample, splitmix64(sample, 0)))
    names = {"object": "red object", "one": "red one", "other": "blue one"}
    assert all(sentence.format(**names) in page for sentence in SENTENCES.values())


def test_the_shares_of_the_specification() -> None:
    page = " ".join((Path(__file__).parents[2] / "docs" / "reference" / "sort-of-clevr-v2.md").read_text().split())
    batch = make_sort_of_clevr_v2(V2, "test")[np.arange(5000)]
    assert batch.kind is not None
    counts = [torch.bincount(batch.answer[(batch.kind == kind) & (batch.answer >= 0)]) for kind in range(9)]
    groups = [counts[first : first + 3] for first in (0, 3, 6)]
    commonest = [round(100 * sum(int(c.max()) for c in g) / sum(int(c.sum()) for c in g)) for g in groups]
    assert "{} % of the unary, {} % of the binary and {} % of the ternary".format(*commonest) in page
    between, line, obtuse = (round(100 * int(c.max()) / int(c.sum())) for c in counts[6:])
    assert f"(0 of `between` {between} %, no of `line` {line} %, 2 of `obtuse` {obtuse} %)" in page
    for objects, sentence in (
        (6, "With six objects {} % of the `closest` questions are clear, {}, {} and {} % of the ternary ones"),
        (12, "with twelve objects {}, {}, {} and {} %."),
    ):
        scenes = make_sort_of_clevr_v2(V2, "test", images=1, objects=objects).scenes(np.arange(2000))
        named = (name_objects(scenes) < 18).sum(axis=1)
        _, binary, ternary = (part.clear.sum(axis=(1, 2)) for part in answer_scenes(scenes))
        shares = [binary[0] / named.sum(), *(ternary / (named * (named - 1) / 2).sum())]
        assert sentence.format(*(round(100 * share) for share in shares)) in page, shares
