"""Sort-of-CLEVR against oracles that share no code with it: the pixels themselves, and a plain loop in Python."""

import math
import runpy
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from bcn.bench.data import bench_sort_of_clevr, compare
from bcn.data.dataset import Batch
from bcn.data.random import splitmix64
from bcn.data.registry import open_dataset
from bcn.data.sort_of_clevr import (
    ANSWERS,
    COLOURS,
    KINDS,
    LEGACY,
    SHAPES,
    STREAM,
    V1,
    VERSIONS,
    Scenes,
    SortOfClevr,
    SortOfClevrStream,
    make_sort_of_clevr,
    question_bits,
)
from bcn.data.sort_of_clevr.reference import make_batch
from bcn.data.sort_of_clevr.samples import Questions, SampleGenerator
from bcn.data.sort_of_clevr.scene import scenes_v1
from bcn.data.sort_of_clevr.sentences import SENTENCES
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
    V1: "db19cec6533ba4851969bec09c1f0a4470a49755bf40bc826be680a3910e3df2",
    LEGACY: "2210d75d7d9f7f3985fd2760bfe2f42917e960228f148275608f8ea331b13116",
    STREAM: "61b2fbffce67232c161b8472fd96b6c4706c1b72c77d7f40f5b62f21069dbeea",
}
"""of the first 1,000 samples for training with seed 0; if one of them changes, the version needs a new name"""

DISC = """
.....#.....
..#######..
.#########.
.#########.
.#########.
###########
.#########.
.#########.
.#########.
..#######..
.....#.....
""".strip().splitlines()


@pytest.fixture(scope="module")
def v1() -> SortOfClevr:
    return make_sort_of_clevr(V1, "train", images=400, questions="all")


def count_repeats(*scenes: Scenes) -> int:
    """How many of all these scenes are copies of another: 0 where the splits share nothing and repeat nothing."""
    rows = np.concatenate([np.concatenate([part * each.present for part in each], axis=1) for each in scenes])
    return len(rows) - len(np.unique(rows, axis=0))


def look(image: np.ndarray) -> dict[str, tuple[float, float, str]]:
    """What a careful eye finds in an image without overlaps: for each colour x, y and shape."""
    seen = {}
    for colour, rgb in SEEN_COLOURS.items():
        mask = (image == np.reshape(rgb, (3, 1, 1))).all(axis=0)
        if mask.any():
            rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
            box = mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
            assert box.shape == (11, 11)
            shape = "square" if box.all() else "circle"
            if shape == "circle":
                assert ["".join(".#"[pixel] for pixel in row) for row in box.astype(int)] == DISC
            seen[colour] = (columns.mean(), rows.mean(), shape)
    ground = (image == 255).all(axis=0)
    assert (~ground).sum() == sum(121 if shape == "square" else 81 for _, _, shape in seen.values())
    return seen


def reply(seen: dict[str, tuple[float, float, str]], kind: str, colour: str) -> str:
    """Answer a question from what is seen."""
    x, y, shape = seen[colour]
    away = {other: math.hypot(seen[other][0] - x, seen[other][1] - y) for other in seen if other != colour}
    if kind == "shape":
        return shape
    if kind == "left":
        return "yes" if x + 0.5 < 75 / 2 else "no"
    if kind == "above":
        return "yes" if y + 0.5 < 75 / 2 else "no"
    if kind == "closest":
        return seen[min(away, key=away.__getitem__)][2]
    if kind == "furthest":
        return seen[max(away, key=away.__getitem__)][2]
    return str([each[2] for each in seen.values()].count(shape))


def asked(batch: Batch, image: int) -> list[tuple[str, str, str]]:
    """Kind, colour and answer of each question about an image, from its 11 bits."""
    assert batch.question is not None
    result = []
    for bits, answer in zip(batch.question[image].tolist(), batch.answer[image].tolist(), strict=True):
        assert sorted(bits) == [0.0] * 8 + [1.0] * 3
        colour, relational, kind = bits[:6].index(1), bits[6:8].index(1), bits[8:].index(1)
        result.append((KINDS[3 * relational + kind], COLOURS[colour], ANSWERS[answer]))
    return result


def test_pixels_answer_every_question(v1: SortOfClevr) -> None:
    batch = v1[np.arange(len(v1))]
    for image in range(len(v1)):
        seen = look(batch.image[image].numpy())
        questions = asked(batch, image)
        assert [(kind, colour) for kind, colour, _ in questions] == [(k, c) for k in KINDS for c in COLOURS]
        for kind, colour, answer in questions:
            assert reply(seen, kind, colour) == answer, (image, kind, colour)


def test_v1_keeps_its_rules_as_seen_in_the_pixels(v1: SortOfClevr) -> None:
    columns = set()
    for image in v1[np.arange(len(v1))].image.numpy():
        seen = list(look(image).values())
        assert len(seen) == 6
        for (ax, ay, _), (bx, by, _) in combinations(seen, 2):
            assert max(abs(ax - bx), abs(ay - by)) >= 11
        for i, (x, y, _) in enumerate(seen):
            assert 5 <= x <= 69
            assert 5 <= y <= 69
            assert 37 not in (x, y)
            columns.add(x)
            others = seen[:i] + seen[i + 1 :]
            away = {s: [math.dist((x, y), o[:2]) for o in others if o[2] == s] for s in ("square", "circle")}
            if all(away.values()):
                assert abs(min(away["square"]) - min(away["circle"])) >= 1 - 1e-9
                assert abs(max(away["square"]) - max(away["circle"])) >= 1 - 1e-9
    assert columns == set(range(5, 70)) - {37}


@pytest.mark.parametrize("objects", [2, 3, 4, 5])
def test_fewer_objects(objects: int) -> None:
    every = make_sort_of_clevr(V1, "test", images=40, objects=objects, questions="all")[np.arange(40)]
    sampled = make_sort_of_clevr(V1, "test", images=40, objects=objects)[np.arange(40)]
    assert every.answer.shape == (40, 6 * objects)
    assert sampled.answer.shape == (40, 2 * min(10, 3 * objects))
    assert torch.equal(every.image, sampled.image)
    present = set()
    for image in range(40):
        seen = look(every.image[image].numpy())
        assert len(seen) == objects
        present.add(frozenset(seen))
        assert {colour for _, colour, _ in asked(every, image)} == set(seen)
        assert set(asked(sampled, image)) <= set(asked(every, image))
        for kind, colour, answer in asked(every, image):
            assert reply(seen, kind, colour) == answer
    assert len(present) > 3  # not always the same colours


@pytest.mark.parametrize("version", VERSIONS)
def test_a_batch_is_what_the_protocol_says(version: str) -> None:
    dataset = make_sort_of_clevr(version, "train", images=30, seed=5)
    batch = dataset[[7, 3, 3]]
    assert len(dataset) == 30
    assert (batch.image.shape, batch.image.dtype) == ((3, 3, 75, 75), torch.uint8)
    assert batch.question is not None
    assert batch.kind is not None
    assert (batch.question.shape, batch.question.dtype) == ((3, 20, 11), torch.float32)
    assert (batch.answer.shape, batch.answer.dtype) == ((3, 20), torch.int64)
    assert (batch.kind.shape, batch.kind.dtype) == ((3, 20), torch.int64)
    assert torch.equal(batch.image[1], batch.image[2])
    assert not torch.equal(batch.image[0], batch.image[1])
    for image in range(3):
        kinds = [kind for kind, _, _ in asked(batch, image)]
        assert kinds == [KINDS[kind] for kind in batch.kind[image].tolist()]
        assert set(kinds[:10]) <= {"shape", "left", "above"}
        assert set(kinds[10:]) <= {"closest", "furthest", "count"}
    assert (dataset.augment(batch, torch.Generator()) is batch) is not dataset.augments
    assert dataset.augments is (version != LEGACY)
    assert dataset[np.zeros(0, dtype=int)].answer.shape == (0, 20)


def test_sampled_questions_of_v1_are_distinct_and_even() -> None:
    batch = make_sort_of_clevr(V1, "val")[np.arange(1000)]
    assert batch.question is not None
    questions = batch.question.numpy()
    for halves in (questions[:, :10], questions[:, 10:]):
        assert min(len(np.unique(of_one, axis=0)) for of_one in halves) == 10
    share = np.array([(questions == bits).all(axis=2).any(axis=1).mean() for bits in question_bits()])
    assert np.abs(share - 10 / 18).max() < 4 * math.sqrt(10 / 18 * 8 / 18 / 1000)


@pytest.mark.parametrize(("version", "split"), [(V1, 2), (LEGACY, 6)])
def test_the_plain_loop_gives_the_same_samples(version: str, split: int) -> None:
    ours = make_sort_of_clevr(version, "test", images=200, seed=11)[np.arange(200)]
    plain = make_batch(version, int(splitmix64(11, split)), range(200))
    for part in ("image", "question", "answer", "kind"):
        assert torch.equal(getattr(ours, part), getattr(plain, part))


@pytest.mark.parametrize("version", VERSIONS)
def test_checksum_of_the_first_thousand_samples(version: str) -> None:
    assert make_sort_of_clevr(version, "train", images=1000).checksum() == CHECKSUMS[version]


@pytest.mark.parametrize(
    ("objects", "sampled", "every"),
    [
        (2, "7901b3e060c628d2", "262618f80f08d6c7"),
        (3, "d0dfcde46602efd1", "cb46db254fae5d5b"),
        (4, "51e74f2b99fd78cc", "8fb6bbbd138973c2"),
        (5, "df5b654cb3ea4b1b", "b668cae0f4a21b4f"),
        (6, "66421260e2220a3c", "968af8fdcf88740f"),
    ],
)
def test_checksums_for_any_number_of_objects(objects: int, sampled: str, every: str) -> None:
    """With the largest seed; two implementations, in C and in numpy, agreed on these."""
    options: dict[Questions, str] = {"sampled": sampled, "all": every}
    for questions, checksum in options.items():
        dataset = make_sort_of_clevr(V1, "val", images=700, objects=objects, questions=questions, seed=2**64 - 1)
        assert dataset.checksum().startswith(checksum)


def test_the_specification_says_the_same() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "sort-of-clevr.md").read_text()
    assert all(checksum in page for checksum in CHECKSUMS.values())
    dataset = make_sort_of_clevr(V1, "train", images=1)
    scene = dataset.scenes([0])
    assert ", ".join(SHAPES[shape] for shape in scene.shape[0]) in page
    assert ", ".join(f"({x}, {y})" for x, y in zip(scene.x[0], scene.y[0], strict=True)) in page
    stream = splitmix64(0, 0)
    sample = splitmix64(stream, 0)
    assert all(f"{word:X}" in page for word in (stream, sample, splitmix64(sample, 0)))
    questions = asked(dataset[[0]], 0)
    assert (questions[0], questions[-1]) == (("left", "blue", "yes"), ("closest", "red", "square"))
    assert all(sentence.format("red") in page for sentence in SENTENCES.values())


def test_the_pictures_of_the_specification_are_up_to_date(tmp_path: Path) -> None:
    docs = Path(__file__).parents[2] / "docs"
    runpy.run_path(str(docs / "make_pictures.py"))["main"](tmp_path)
    for made in tmp_path.iterdir():
        drawn, kept = (np.asarray(Image.open(path).convert("RGB")) for path in (made, docs / "images" / made.name))
        assert np.array_equal(drawn, kept), made.name
    assert len(list(tmp_path.iterdir())) == 8


def test_which_colours_are_present_is_as_specified() -> None:
    scenes = make_sort_of_clevr(V1, "val", images=20, objects=4).scenes(np.arange(20))
    for index in range(20):
        seed = int(splitmix64(splitmix64(0, 1), index))
        keys = sorted(range(6), key=lambda colour: int(splitmix64(seed, 1 + colour)) >> 6)
        assert set(np.flatnonzero(scenes.present[index])) == set(keys[:4])


@pytest.mark.parametrize("objects", [-1, 0, 1, 7, 100])
def test_numbers_of_objects_that_no_scene_has_are_refused(objects: int) -> None:
    """Given one, the search for an arrangement would never end."""
    with pytest.raises(BcnError, match=f"objects={objects}: a scene of v1 has 2 to 6 objects"):
        SampleGenerator(0, 0, legacy=False, objects=objects, questions="sampled")
    with pytest.raises(BcnError, match=f"objects={objects}: a scene of the original has 6 objects"):
        make_sort_of_clevr(LEGACY, "test", images=1, objects=objects)
    with pytest.raises(BcnError, match=f"objects={objects}: a scene has 2 to 6 objects"):
        scenes_v1(np.arange(2, dtype=np.uint64), objects=objects)


def test_random_words_are_splitmix64() -> None:
    published = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    assert splitmix64(1234567, np.arange(5)).tolist() == published


def test_no_scene_occurs_twice_across_splits() -> None:
    for version in (V1, LEGACY):
        splits = [make_sort_of_clevr(version, split, images=1) for split in ("train", "val", "test")]
        scenes = [split.scenes(np.arange(size)) for split, size in zip(splits, (9800, 1000, 5000), strict=True)]
        scenes.append(make_sort_of_clevr(STREAM, "train").scenes(np.arange(9800)))
        assert count_repeats(*scenes) == 0
        assert count_repeats(scenes[1], scenes[0], scenes[1]) == 1000


def test_default_sizes_and_prefixes() -> None:
    sizes = {(V1, "val"): 1000, (V1, "test"): 5000, (LEGACY, "test"): 200, (LEGACY, "val"): 1000}
    for (version, split), size in sizes.items():
        assert len(make_sort_of_clevr(version, split)) == size
    small, large = (make_sort_of_clevr(LEGACY, "test", images=images) for images in (None, 700))
    assert torch.equal(small[np.arange(200)].image, large[np.arange(200)].image)
    seeds = [make_sort_of_clevr(V1, "test", images=20, seed=seed).checksum() for seed in (0, 1, 2**64 - 1)]
    assert len(set(seeds)) == 3


def test_the_stream_is_a_function_of_seed_and_index() -> None:
    stream = make_sort_of_clevr(STREAM, "train", images=50, seed=3)
    assert isinstance(stream, SortOfClevrStream)
    index = np.array([2**40 + 5, 0, 17, 2**62, 3, 17])
    together = stream[index]
    shuffled = stream[index[::-1].copy()]
    for part in ("image", "question", "answer", "kind"):
        whole = getattr(together, part)
        assert torch.equal(whole.flip(0), getattr(shuffled, part))
        assert torch.equal(whole, torch.cat([getattr(stream[[i]], part) for i in index]))
    long = stream[np.arange(700)]
    assert torch.equal(long.image[400:450], stream[np.arange(400, 450)].image)
    assert not torch.equal(together.image, make_sort_of_clevr(STREAM, "train", seed=4)[index].image)


def test_the_stream_goes_on_and_on() -> None:
    stream = make_sort_of_clevr(STREAM, "train", images=50)
    orders = [stream.order(epoch, seed=seed) for seed in (0, 1) for epoch in range(4)]
    assert all(len(order) == 50 for order in orders)
    assert len(np.unique(np.concatenate(orders))) == 400
    assert count_repeats(*(stream.scenes(order) for order in orders)) == 0
    assert (
        make_sort_of_clevr(STREAM, "test", images=20).checksum() == make_sort_of_clevr(V1, "test", images=20).checksum()
    )


def test_order_is_a_permutation_that_seed_and_epoch_decide(v1: SortOfClevr) -> None:
    orders = [v1.order(epoch, seed=seed) for seed in (0, 1) for epoch in (0, 1)]
    assert all(np.array_equal(np.sort(order), np.arange(400)) for order in orders)
    assert len({order.tobytes() for order in orders}) == 4
    np.testing.assert_array_equal(v1.order(1, seed=1), orders[3])


@pytest.mark.parametrize("name", ["sort-of-clevr-v1", "sort-of-clevr-v2", "sort-of-clevr-legacy-ternary"])
def test_more_images_than_the_machine_has_memory_for_are_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before any is made: a system that promises more memory than there is kills whoever takes it."""
    monkeypatch.setattr("os.sysconf", {"SC_PHYS_PAGES": 100, "SC_PAGE_SIZE": 4096}.__getitem__, raising=False)
    assert len(open_dataset(name, "test", images=20)) == 20
    with pytest.raises(BcnError, match="images=30: there is no memory for so many"):
        open_dataset(name, "test", images=30)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"version": "sort-of-clevr-v2"}, "did you mean 'sort-of-clevr-v1'"),
        ({"split": "training"}, "did you mean 'train'"),
        ({"images": 0}, "at least one"),
        ({"images": 10**12}, "no memory for so many"),
        ({"images": 10**20}, "no memory for so many"),
        ({"objects": 7}, "2 to 6"),
        ({"objects": 1}, "2 to 6"),
        ({"version": LEGACY, "objects": 5}, "has 6 objects"),
        ({"seed": -1}, "from 0"),
        ({"questions": "some"}, "accepted are|did you mean"),
    ],
)
def test_bad_arguments(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(BcnError, match=message):
        make_sort_of_clevr(**{"version": V1, "split": "train"} | arguments)  # type: ignore[arg-type]


def test_bad_indices() -> None:
    with pytest.raises(IndexError):
        make_sort_of_clevr(V1, "train", images=10)[[10]]
    stream = make_sort_of_clevr(STREAM, "train")
    with pytest.raises(BcnError, match="from 0"):
        stream[[-1]]
    with pytest.raises(BcnError, match="2\\*\\*31"):
        stream.order(0, seed=2**31)


def test_the_benchmark_takes_turns() -> None:
    calls: list[tuple[str, int]] = []
    result = compare(
        "turns",
        lambda n: calls.append(("ours", n)),
        lambda n: calls.append(("plain", n)),
        samples=9,
        plain_samples=3,
        rounds=2,
    )
    assert calls == [("ours", 9), ("plain", 3)] * 3
    assert result["name"] == "turns"
    assert result["speedup"]["min"] <= result["speedup"]["median"] <= result["speedup"]["max"]


def test_the_benchmark_of_sort_of_clevr_runs() -> None:
    result = bench_sort_of_clevr(V1, images=130, plain_images=70, rounds=1)
    assert result["ours"]["samples"] == 130
    assert result["plain"]["samples"] == 70
    assert result["speedup"]["median"] == result["ours"]["median"] / result["plain"]["median"]
