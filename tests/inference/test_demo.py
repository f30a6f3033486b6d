"""`bcn demo`: accuracy by kind of question beside the published one, and a picture."""

from pathlib import Path

import pytest
from helpers.small_weights import scene_run
from PIL import Image

from bcn.data.sort_of_clevr import KINDS
from bcn.inference import demo


def test_the_demo_prints_accuracy_and_draws_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "SCENES", 5)
    demo.demo(tmp_path, published={"relational": 96.7}, weights=str(scene_run()))
    columns = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines() if line}
    assert set(KINDS) <= set(columns)
    assert columns["relational"][-1] == "96.7"
    assert columns["count"][-1] == "-"
    with Image.open(tmp_path / "answers.png") as picture:
        assert len(set(picture.convert("L").tobytes())) > 10
