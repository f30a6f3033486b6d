"""A device that is not the CPU goes the whole way: train, resume, evaluate, ask, demo; real GPUs, where there are."""

import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.command import run_bcn
from helpers.far import far_device
from helpers.small_weights import digit_weights, scene_run, word_weights
from PIL import Image
from torch import Tensor

from bcn.errors import BcnError
from bcn.inference.reasoner import load
from bcn.paper.tables import find_recipe
from bcn.training.device import find_device
from bcn.training.interrupts import Interrupted
from bcn.training.loop import Trainer, train
from bcn.training.recipe import Optim
from bcn.training.run import run_id
from bcn.training.weights import read_weights

SGD = Optim("sgd", 0.01, momentum=0.9, clip_norm=1.0, ema_decay=0.9)
"""Adam would turn the rounding of a gradient that is zero, a bias' before BatchNorm, into a step of full length"""


@pytest.fixture
def far() -> Iterator[torch.device]:
    with far_device() as device:
        yield device


def test_the_test_device_refuses_to_mix(far: torch.device) -> None:
    there, here = torch.rand(3, device=far), torch.rand(3)
    assert there.device == far
    assert torch.equal(there.cpu() + here, (there + here.to(far)).cpu())
    for mix in ("there + here", "here @ there", "torch.cat([there, here])"):
        with pytest.raises(RuntimeError, match="far"):
            eval(mix)


def trained(name: str, runs: Path, device: str, optim: Optim | None = None) -> dict[str, Tensor]:
    recipe = find_recipe(name, "smoke")
    recipe = replace(
        recipe, data=replace(recipe.data, train=2, val=1, test=1), batch_size=1, optim=optim or recipe.optim
    )
    train(recipe, seed=0, runs=runs, threads=1, device=device)
    return read_weights(runs / run_id(recipe, 0) / "last.safetensors")[0]


def assert_same_weights(ours: dict[str, Tensor], theirs: dict[str, Tensor], tolerance: float) -> None:
    assert ours.keys() == theirs.keys()
    for key, tensor in theirs.items():
        torch.testing.assert_close(ours[key], tensor, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["table3/multirn-h", "table3/rn"])
def test_training_is_the_same_on_another_device(name: str, tmp_path: Path, far: torch.device) -> None:
    ours, theirs = (trained(name, tmp_path / device, device, SGD) for device in ("far", "cpu"))
    assert_same_weights(ours, theirs, 1e-5)


def test_a_run_goes_on_where_it_stopped(tmp_path: Path, far: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = trained("table3/multirn", tmp_path / "whole", "far")
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "end_epoch", lambda *_: stop())
        with pytest.raises(Interrupted):
            trained("table3/multirn", tmp_path / "stopped", "far")
    resumed = trained("table3/multirn", tmp_path / "stopped", "far")
    assert all(torch.equal(tensor, resumed[key]) for key, tensor in whole.items())


def stop() -> None:
    raise Interrupted(signal.SIGTERM)


def test_commands_run_on_another_device(tmp_path: Path, far: torch.device) -> None:
    """What `bcn` prints there is what it prints on the CPU."""
    picture = tmp_path / "scene.png"
    Image.new("RGB", (75, 75), "white").save(picture)
    for words in (
        ["eval", scene_run(), "--json", "--images", 4],
        ["ask", picture, "is the red object on the left?", "--weights", scene_run(), "--map", tmp_path / "map.png"],
        ["find", picture, "--weights", digit_weights(), "--json"],
        ["ask", picture, "how many cubes are there", "many cubes", "--weights", word_weights()],
    ):
        assert run_bcn(*words, "--device", "far") == run_bcn(*words, "--device", "cpu")


def test_the_demo_runs_on_another_device(tmp_path: Path, far: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bcn.inference.demo.SCENES", 20)
    monkeypatch.setenv("BCN_DEVICE", "far")
    assert "relational" in run_bcn("demo", "--out", tmp_path)
    assert (tmp_path / "answers.png").exists()


def test_a_reasoner_goes_there_and_back(far: torch.device) -> None:
    image, reasoner = Image.new("RGB", (75, 75)), load(scene_run())
    question = reasoner.encode("is the red object on the left?").numbers_QD
    here = reasoner.probabilities(image, question)
    assert reasoner.to("far") is reasoner
    np.testing.assert_allclose(reasoner.probabilities(image, question), here, atol=1e-5)
    assert np.array_equal(reasoner.to("cpu").probabilities(image, question), here)
    assert reasoner.to("far").broadcast(image).value.shape == (256,)


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "far:1", "cuda:9", "meta", "cuda "])
def test_a_device_that_is_not_there_is_refused(name: str, far: torch.device) -> None:
    with pytest.raises(BcnError, match=r"device|does not exist"):
        find_device(name)


def test_the_environment_names_the_default(far: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BCN_DEVICE", "far")
    assert find_device() == far
    assert find_device("cpu").type == "cpu"
    monkeypatch.delenv("BCN_DEVICE")
    assert find_device("auto") == find_device() == torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


def test_processes_take_a_device_each(far: torch.device) -> None:
    assert find_device("far", local_rank=0) == far
    with pytest.raises(BcnError, match="this machine has 1"):
        find_device("far", local_rank=1)
    with pytest.raises(BcnError, match="several processes"):
        find_device("far:0", local_rank=0)


@pytest.mark.parametrize("device", ["cuda", "mps"])
@pytest.mark.parametrize("name", ["table3/multirn-h", "table3/rn"])
def test_a_real_gpu_trains_like_the_cpu(name: str, device: str, tmp_path: Path) -> None:
    backend = torch.cuda if device == "cuda" else torch.backends.mps
    if not backend.is_available():
        pytest.skip(f"there is no {device} here")
    ours, theirs = (trained(name, tmp_path / where, where, SGD) for where in (device, "cpu"))
    assert_same_weights(ours, theirs, 1e-3)
