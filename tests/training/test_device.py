"""Which device is meant by which name; real GPUs, where there are some; and the tests of the device `far:0`."""

import os
from pathlib import Path

import pytest
import torch
from helpers.command import ROOT, finish, start_python
from helpers.small_runs import SGD, assert_same_weights, train_small

from bcn.errors import BcnError
from bcn.training.device import find_device
from bcn.training.runtime import Runtime


def test_another_device_goes_the_whole_way() -> None:
    """The tests in `far/`, in a process of their own: autograd knows only devices that were there before its first use.

    `BCN_FAR=1 python -m pytest tests/training/far` runs them by hand.
    """
    environment = {"BCN_FAR": "1", "BCN_CACHE": os.environ["BCN_CACHE"]}
    out, _ = finish(start_python("-m", "pytest", "-x", "tests/training/far", cwd=ROOT, environment=environment))
    assert "passed" in out


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "cuda:99", "meta", "cuda "])
def test_a_device_that_is_not_there_is_refused(name: str) -> None:
    with pytest.raises(BcnError, match=r"accepted|this machine has"):
        find_device(name)


def test_auto_is_a_cuda_gpu_or_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BCN_DEVICE", raising=False)
    assert find_device("auto") == find_device() == torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize("device", ["cuda", "mps"])
@pytest.mark.parametrize("name", ["table3/multirn-h", "table3/rn"])
def test_a_real_gpu_trains_like_the_cpu(name: str, device: str, tmp_path: Path) -> None:
    backend = torch.cuda if device == "cuda" else torch.backends.mps
    if not backend.is_available():
        pytest.skip(f"there is no {device} here")
    ours, theirs = (train_small(name, tmp_path / where, Runtime(where), SGD) for where in (device, "cpu"))
    assert_same_weights(ours, theirs, 1e-3)
