"""The examples run as they stand, on a few images, and train."""

import runpy
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.torchvision import import_torchvision
from PIL import Image

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / name))


def lines(name: str) -> int:
    """Of code, without docstring, empty lines and imports."""
    text = (EXAMPLES / name).read_text().split('"""')[2]
    return sum(bool(line.strip()) and not line.startswith(("import", "from")) for line in text.splitlines())


def test_lightning(tmp_path: Path) -> None:
    import_torchvision()  # which Lightning imports where it is there
    pytest.importorskip("lightning")
    torch.manual_seed(0)
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "accelerator": "cpu"}
    scenes = example("lightning_scenes.py")["main"](64, default_root_dir=tmp_path, **quiet)
    assert scenes.global_step == 20
    assert scenes.trainer.callback_metrics["loss"] < 2  # ln 10 = 2.3 for ten answers


def test_accelerate() -> None:
    pytest.importorskip("accelerate")
    torch.manual_seed(0)
    losses = example("accelerate_scenes.py")["main"](64, epochs=10)
    assert len(losses) == 20
    assert losses[-1] < 2 < losses[0]


@pytest.mark.parametrize(
    ("name", "most"),
    [("lightning_scenes.py", 20), ("accelerate_scenes.py", 20), ("segment_digits.py", 40), ("detect_objects.py", 40)],
)
def test_they_are_short(name: str, most: int) -> None:
    assert lines(name) <= most


@pytest.mark.data("mnist")
def test_masks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    scores = example("segment_digits.py")["main"](160, 8, 3)
    assert scores.keys() == {"U-Net", "with a BCN"}
    assert all(score > 0.05 for score in scores.values())  # the background, one class of eleven, is learned first
    with Image.open(tmp_path / "masks.png") as picture:
        assert picture.size == (8 * 128, 4 * 128)


def test_boxes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    monkeypatch.chdir(tmp_path)
    scores = example("detect_objects.py")["main"](16, 6, 1)
    assert scores.keys() == {"CentreNet", "with a BCN"}
    with Image.open(tmp_path / "boxes.png") as picture:
        assert picture.size == (6 * 128, 2 * 128)
