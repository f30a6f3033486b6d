"""Where the tests find the real data, where they cache, and how many threads they use."""

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

BESIDE = Path(__file__).parents[2] / "shared" / "data"
if "BCN_DATA" not in os.environ and BESIDE.is_dir():
    os.environ["BCN_DATA"] = str(BESIDE)
if "BCN_CACHE" not in os.environ:
    _cache = tempfile.TemporaryDirectory(prefix="bcn-tests-")  # removed when the session ends
    os.environ["BCN_CACHE"] = _cache.name
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["BCN_DEVICE"] = "cpu"  # what holds bit by bit holds there, also on a machine with a GPU
collect_ignore = [] if "BCN_FAR" in os.environ else ["training/far"]  # which test_device.py runs

import torch  # noqa: E402
from helpers.mnist_sample import use_mnist_sample  # noqa: E402

torch.set_num_threads(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is marked `data("mnist")` where there is no directory of that name."""
    roots = [Path(os.environ[name]) for name in ("BCN_DATA", "BCN_CACHE") if os.environ.get(name)]
    for item in items:
        for mark in item.iter_markers("data"):
            for name in mark.args:
                if not any((root / name).is_dir() for root in roots):
                    item.add_marker(pytest.mark.skip(reason=f"needs the real data: no {name}/ in BCN_DATA"))


@pytest.fixture
def mnist_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MNIST's first 1,000 test digits in the place of its 10,000."""
    use_mnist_sample(monkeypatch, tmp_path / "cache")


@pytest.fixture
def sighup_heeded() -> Iterator[None]:
    """SIGHUP does what it does in a shell, also where the tests were started by nohup, which has it ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)
