"""The stream of rendered scenes: the same samples whoever renders them, and a run that trains on it."""

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from bcn.data.clevr_like.grammars import GRAMMARS
from bcn.data.clevr_like.make import make_clevr_like
from bcn.data.clevr_like.program import run
from bcn.data.clevr_like.scene import make_scene
from bcn.data.clevr_like.spec import SplitSpec
from bcn.data.registry import open_dataset
from bcn.errors import BcnError
from bcn.paper.tables import find_recipe
from bcn.training.loop import train

if has_numba := find_spec("numba") is not None:
    from bcn.data.clevr_like.render import render_scene
    from bcn.data.clevr_like.stream import ClevrStream, make_clevr_stream

pytestmark = pytest.mark.skipif(not has_numba, reason="needs the extra render")
INDEX = [5, 0, (3 << 32) + 1]


@pytest.fixture(scope="module")
def stream() -> "ClevrStream":
    return make_clevr_stream(images=6, size=24)


def test_a_sample_is_its_scene_its_questions_and_its_picture(stream: "ClevrStream") -> None:
    batch = stream[INDEX]
    assert batch.question is not None
    for row, index in enumerate(INDEX):
        scene = make_scene(index, split="stream")
        assert np.array_equal(batch.image[row].permute(1, 2, 0), render_scene(scene, width=24, height=24))
        for column, question in enumerate(GRAMMARS["clevr-like-v2"](scene)):
            words = question["question"].lower().replace("?", "").replace(";", " ;").split()
            assert stream.to_sentence(batch.question[row, column]) == " ".join(words) + "?"
            assert stream.answers[batch.answer[row, column]] == question["answer"]


def test_the_number_of_workers_changes_nothing(stream: "ClevrStream") -> None:
    expected = stream[INDEX]
    with_workers = make_clevr_stream(images=6, size=24, workers=2)[INDEX]
    loaded = next(iter(DataLoader(stream, 3, sampler=INDEX, num_workers=2)))
    for name in ("image", "question", "answer", "kind"):
        assert torch.equal(getattr(with_workers, name), getattr(expected, name))
        assert torch.equal(loaded[name], getattr(expected, name))
    assert not torch.equal(make_clevr_stream(images=6, size=24, seed=1)[INDEX].image, expected.image)


def test_epochs_and_seeds_never_meet(stream: "ClevrStream") -> None:
    orders = [stream.order(epoch, seed=seed) for epoch in range(3) for seed in (0, 1, 7)]
    assert len(np.unique(np.concatenate(orders))) == 9 * len(stream)
    with pytest.raises(BcnError, match=r"seed 2147483648, epoch 0: a stream has seeds below 2\*\*31"):
        stream.order(0, seed=2**31)
    with pytest.raises(BcnError, match="index -1: a stream is indexed from 0 on"):
        stream[[-1]]


def test_auxiliary_supervision_of_a_stream_is_of_its_scenes(stream: "ClevrStream") -> None:
    batch = stream.referent_supervision()[INDEX]
    assert batch.auxiliary is not None
    point_BT2, role_BQTR = batch.auxiliary["point"], batch.auxiliary["role"]
    objects = stream.object_supervision((8, 8))[INDEX]
    assert objects.question is not None
    assert torch.equal(objects.image, batch.image)
    for row, index in enumerate(INDEX):
        scene = make_scene(index, split="stream")
        pixels = np.array([thing["pixel_coords"][:2] for thing in scene["objects"]])
        expected = (pixels / (480, 320)).clip(0, 1)
        assert point_BT2[row, : len(pixels)].numpy() == pytest.approx(expected, abs=0.01)
        for column, question in enumerate(GRAMMARS["clevr-like-v2"](scene)):
            if question["program"][-1]["function"] == "count":
                counted = run(question["program"], scene)[-1]
                assert role_BQTR[row, column, :, 0].sum() == counted
        cells = objects.question[row, :, 2] == 0
        assert 0 <= (objects.answer[row][cells] == 1).sum() <= len(pixels)
        known = objects.answer[row][~cells].reshape(-1, 6)
        assert (known[:, 0] >= 0).sum() == len(pixels)


def test_a_recipe_trains_on_fresh_scenes(tmp_path: Path) -> None:
    for split in ("val", "test"):
        make_clevr_like(
            tmp_path / "clevr-like-v2",
            SplitSpec(split, size=32, version="clevr-like-v2"),
            4,
            done=lambda count: None,
        )
    recipe = find_recipe("clevr-like-v2/multirn-h", "smoke")
    data = replace(recipe.data, name="clevr-like-v2-stream", train=4, val=4, test=4)
    record = train(replace(recipe, data=data, epochs=3, batch_size=2), seed=0, runs=tmp_path / "runs", data=tmp_path)
    assert record["steps"] == 6
    assert open_dataset("clevr-like-v2-stream", "val", data=tmp_path).name == "clevr-like-v2"
    with pytest.raises(BcnError, match="clevr-like-v2 is not in"):
        open_dataset("clevr-like-v2-stream", "test", data=tmp_path / "runs")
