"""A device that is not the CPU goes the whole way: train, resume, evaluate, ask, find, demo."""

import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.command import run_bcn
from helpers.small_runs import SGD, assert_same_weights, train_small
from helpers.small_weights import digit_weights, scene_run, word_weights
from PIL import Image

from bcn.errors import BcnError
from bcn.inference.reasoner import load
from bcn.training.device import find_device
from bcn.training.interrupts import Interrupted
from bcn.training.loop import Trainer
from bcn.training.runtime import Runtime


def test_the_test_device_refuses_to_mix(far: torch.device) -> None:
    there, here = torch.rand(3, device=far), torch.rand(3)
    assert there.device == far
    assert torch.equal(there.cpu() + here, (there + here.to(far)).cpu())
    for mix in ("there + here", "here @ there", "torch.cat([there, here])"):
        with pytest.raises(RuntimeError, match="far"):
            eval(mix)


@pytest.mark.parametrize("name", ["table3/multirn-h", "table3/rn"])
def test_training_is_the_same_on_another_device(name: str, tmp_path: Path, far: torch.device) -> None:
    ours, theirs = (train_small(name, tmp_path / device, Runtime(device), SGD) for device in ("far", "cpu"))
    assert_same_weights(ours, theirs, 1e-5)


def test_a_run_goes_on_where_it_stopped(tmp_path: Path, far: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = train_small("table3/multirn", tmp_path / "whole", Runtime("far"))
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "end_epoch", lambda *_: stop())
        with pytest.raises(Interrupted):
            train_small("table3/multirn", tmp_path / "stopped", Runtime("far"))
    resumed = train_small("table3/multirn", tmp_path / "stopped", Runtime("far"))
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


def test_the_environment_names_the_default(far: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BCN_DEVICE", "far")
    assert find_device() == far
    assert find_device("cpu").type == "cpu"
    with pytest.raises(BcnError, match="this machine has 1"):
        find_device("far:1")


def test_processes_take_a_device_each(far: torch.device) -> None:
    assert find_device("far", local_rank=0) == far
    with pytest.raises(BcnError, match="this machine has 1"):
        find_device("far", local_rank=1)
    with pytest.raises(BcnError, match="several processes"):
        find_device("far:0", local_rank=0)
