"""A data set that is kept on a GPU gives the batches that it gives on the host, and sends next to nothing."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.annotated_clevr import annotated_clevr
from helpers.far import Trace
from helpers.small_runs import SGD, assert_same_weights, train_small

from bcn.data.device_images import DeviceImages, images_on_device, take_images
from bcn.data.registry import open_dataset
from bcn.data.vqa.dataset import QuestionDataset
from bcn.training.runtime import Runtime

LIMIT = 2**40


@pytest.fixture
def clevr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BCN_CACHE", str(tmp_path / "cache"))
    return annotated_clevr(tmp_path / "clevr-like-v1")


@pytest.mark.parametrize("name", ["sort-of-clevr-v1", "clevr-like-v1"])
def test_batches_are_those_of_the_host(name: str, clevr: Path, far: torch.device) -> None:
    here = open_dataset(name, "train", data=clevr if name == "clevr-like-v1" else None, images=6)
    if isinstance(here, QuestionDataset):  # those of the sample are of one colour each
        here = replace(here, image=np.random.default_rng(0).integers(256, size=here.image.shape, dtype=np.uint8))
    there, index = here.on_device(far, LIMIT), np.array([4, 0, 4, 1])
    pairs = [(here[index], there[index])]
    pairs += [(here.augment(ours, generator()), there.augment(theirs, generator())) for ours, theirs in pairs]
    for ours, theirs in pairs:
        assert theirs.image.device == far
        assert torch.equal(theirs.image.cpu(), ours.image)
        assert ours.question is not None
        assert theirs.question is not None
        assert torch.equal(theirs.question, ours.question)
        assert torch.equal(theirs.answer, ours.answer)
    assert not torch.equal(pairs[0][0].image, pairs[1][0].image)


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(3)


def test_a_batch_sends_indices_only(far: torch.device) -> None:
    there = open_dataset("sort-of-clevr-v1", "train", images=6).on_device(far, LIMIT)
    with Trace() as trace:
        there.augment(there[np.arange(4)], generator())
    assert not +trace.reads
    assert trace.uploads.total() == 2  # the indices, and which images are mirrored


def test_images_that_do_not_fit_stay_and_those_that_are_shared_are_kept_once(far: torch.device) -> None:
    images = np.arange(5 * 3 * 4 * 4, dtype=np.uint8).reshape(5, 3, 4, 4)
    assert images_on_device(images, far, images.nbytes - 1) is images
    kept = images_on_device(images, far, images.nbytes)
    assert isinstance(kept, DeviceImages)
    assert images_on_device(images, far, LIMIT) is images_on_device(kept, far, LIMIT) is kept
    assert torch.equal(take_images(kept, np.array([3, 1])).cpu(), torch.from_numpy(images[[3, 1]]))
    assert len(images_on_device(images[:2], far, LIMIT)) == 2


def test_a_run_with_its_images_there_ends_the_same(tmp_path: Path, far: torch.device) -> None:
    ours = train_small("table3/multirn-h", tmp_path / "there", Runtime("far", data_on_device="yes"), SGD)
    theirs = train_small("table3/multirn-h", tmp_path / "here", Runtime("far", data_on_device="no"), SGD)
    assert_same_weights(ours, theirs, 0)
