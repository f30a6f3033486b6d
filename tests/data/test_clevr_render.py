"""Pictures of scenes: beside original images, and made in shards."""

import json
import shutil
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from helpers.command import finish, run_bcn, start_python
from PIL import Image

from bcn.data.check import check_directory
from bcn.data.clevr_like import camera, make
from bcn.data.clevr_like.questions import make_questions
from bcn.data.clevr_like.rules import COLORS
from bcn.data.clevr_like.scene import make_scene
from bcn.data.clevr_like.spec import SplitSpec
from bcn.errors import BcnError
from bcn.io import data_root

if has_numba := find_spec("numba") is not None:
    from bcn.data.clevr_like.render import render_scene

needs_numba = pytest.mark.skipif(not has_numba, reason="needs the extra render")


@needs_numba
@pytest.mark.data("clevr")
def test_pictures_of_original_scenes_are_the_original_pictures() -> None:
    """Lights are jittered, and where they stood is not published: so a mean error of a few of 255 levels remains."""
    root = data_root() / "clevr"
    scenes = {
        s["image_filename"]: s
        for s in json.loads((root / "scenes" / "CLEVR_val_scenes_500.json").read_text())["scenes"]
    }
    errors, blank = [], []
    for path in sorted((root / "images" / "val").glob("*.png")):
        with Image.open(path) as image:
            original = np.asarray(image.convert("RGB").resize((96, 64), Image.Resampling.BOX), float)
        errors.append(np.abs(render_scene(scenes[path.name], width=96, height=64) - original).mean())
        blank.append(np.abs(original - original.mean((0, 1))).mean())
    assert len(errors) == 10
    assert np.mean(errors) < 7
    assert np.mean(errors) < np.mean(blank) / 2


@needs_numba
@pytest.mark.parametrize("name", COLORS)
def test_an_object_has_its_color(name: str) -> None:
    """At the middle of a matte ball, red, green and blue are in the proportion of its color."""
    ball = {"shape": "sphere", "color": name, "material": "rubber", "size": "large", "rotation": 0.0}
    scene = {"image_index": 0, "objects": [ball | {"3d_coords": [0.0, 0.0, 0.7]}], "camera": camera.POSITION}
    picture = render_scene(scene, width=48, height=32)
    column, row, _ = camera.project(camera.POSITION, [0.0, 0.0, 0.7]) // 10
    patch = picture[int(row) - 1 : int(row) + 2, int(column) - 1 : int(column) + 2].mean((0, 1)) / 255
    light = ((patch + 0.055) / 1.055) ** 2.4
    color = np.array(COLORS[name])
    assert light / light.sum() == pytest.approx(color / color.sum(), abs=0.03)


@needs_numba
def test_a_picture_is_the_same_again() -> None:
    scene = make_scene(3)
    assert np.array_equal(render_scene(scene, width=32, height=32), render_scene(scene, width=32, height=32))


@needs_numba
def test_a_picture_shows_the_same_at_any_size() -> None:
    scene = make_scene(4)
    large = Image.fromarray(render_scene(scene, width=96, height=64)).resize((24, 16), Image.Resampling.BOX)
    small = render_scene(scene, width=24, height=16)
    assert np.abs(small - np.asarray(large, float)).mean() < 2


@needs_numba
def test_shards_stop_go_on_and_join(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make, "PART", 2)
    order = SplitSpec("val", size=16)
    counts: list[int] = []
    assert not make.make_clevr_like(tmp_path, order, 5, shard=(2, 2), done=counts.append)
    assert counts == [2]
    assert not (tmp_path / "questions").exists()
    first = tmp_path / "images" / "val" / "CLEVR_val_000002.png"
    written = first.stat().st_mtime_ns
    (tmp_path / "images" / "val" / "CLEVR_val_000003.png").unlink()
    assert not make.make_clevr_like(tmp_path, order, 5, shard=(2, 2), done=counts.append)
    assert make.make_clevr_like(tmp_path, order, 5, shard=(1, 2), done=counts.append)
    assert first.stat().st_mtime_ns == written
    assert len(list((tmp_path / "images" / "val").iterdir())) == 5

    scenes = json.loads((tmp_path / "scenes" / "CLEVR_val_scenes.json").read_text())["scenes"]
    questions = json.loads((tmp_path / "questions" / "CLEVR_val_questions.json").read_text())
    assert questions["info"] == {"split": "val", "seed": 0, "size": 16, "version": "clevr-like-v1", "images": 5}
    assert scenes == [make_scene(index, split="val") for index in range(5)]
    assert questions["questions"] == [question for scene in scenes for question in make_questions(scene)]

    assert make.make_clevr_like(tmp_path, order, 6, done=counts.append)
    assert len(json.loads((tmp_path / "scenes" / "CLEVR_val_scenes.json").read_text())["scenes"]) == 6
    with pytest.raises(BcnError, match="was made with"):
        make.make_clevr_like(tmp_path, SplitSpec("val", seed=1, size=16), 6)
    with pytest.raises(BcnError, match=r"5 images of val .* 6 before: give 6 or more"):
        make.make_clevr_like(tmp_path, order, 5)
    (tmp_path / "parts" / "val-x-000000.jsonl").write_text("the part of a split of another name")
    assert make.make_clevr_like(tmp_path, order, 6, done=counts.append)


@needs_numba
def test_parts_that_were_made_apart_are_joined_by_the_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make, "PART", 2)
    order, places = SplitSpec("train", size=16), [tmp_path / name for name in ("a", "b", "whole")]
    for number, place in enumerate(places[:2], 1):
        assert not make.make_clevr_like(place, order, 7, shard=(number, 2), done=lambda count: None)
    assert make.make_clevr_like(places[2], order, 7, done=lambda count: None)

    lacking = check_directory(places[0])
    assert len(lacking) == 1
    assert "train lacks 3 of 7 images (2 to 3, 6 to 6)" in lacking[0]
    shutil.copytree(places[1], places[0], dirs_exist_ok=True)
    assert not any("lacks" in problem for problem in check_directory(places[0]))
    assert _contents(places[0]) == _contents(places[2])

    joined = places[0] / "questions" / "CLEVR_train_questions.json"
    written = joined.stat().st_mtime_ns
    check_directory(places[0])
    assert make.make_clevr_like(places[0], order, 7, done=lambda count: None)
    assert joined.stat().st_mtime_ns == written  # what is whole is not written again

    (places[0] / "parts" / "train-000000.jsonl").write_text('{"info": {"split": "train"}}\n')
    with pytest.raises(BcnError, match=r"train-000000.jsonl is damaged: remove it"):
        check_directory(places[0])


@needs_numba
def test_a_process_that_was_killed_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in the midst of its pictures, it goes on, and ends with the bytes that two processes make in one go."""
    code = "from bcn.data.clevr_like import make; make.PART = 2; from bcn.cli import main; main()"
    options = ["clevr", "make", str(tmp_path / "killed"), "--split", "val", "--images", "6", "--size", "24"]
    process = subprocess.Popen([sys.executable, "-c", code, *options], stderr=subprocess.DEVNULL)
    third = tmp_path / "killed" / "images" / "val" / "CLEVR_val_000002.png"
    while process.poll() is None and not third.exists():
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert third.exists()

    monkeypatch.setattr(make, "PART", 2)
    order = SplitSpec("val", size=24)
    assert make.make_clevr_like(tmp_path / "killed", order, 6, done=lambda count: None)
    assert make.make_clevr_like(tmp_path / "whole", order, 6, jobs=2, done=lambda count: None)
    assert _contents(tmp_path / "killed") == _contents(tmp_path / "whole")


@needs_numba
def test_what_was_not_made_here_is_left_alone(tmp_path: Path) -> None:
    """CLEVR's own files, with and without images, and pictures that nobody ordered."""
    files = {
        "a": ["questions/CLEVR_val_questions.json"],
        "b": ["scenes/CLEVR_val_scenes.json"],
        "c": ["images/val/CLEVR_val_000000.png"],
    }
    for folder, names in files.items():
        for name in names:
            path = tmp_path / folder / name
            path.parent.mkdir(parents=True)
            path.write_text('{"info": {"version": "1.0"}, "questions": []}')
        before = _contents(tmp_path / folder)
        with pytest.raises(BcnError, match="was not made by this command: give another directory"):
            make.make_clevr_like(tmp_path / folder, SplitSpec("val", size=16), 2)
        assert _contents(tmp_path / folder) == before


@needs_numba
def test_pictures_keep_their_order_before_their_part_is_whole(tmp_path: Path) -> None:
    order = SplitSpec("val", size=16)
    assert make.make_clevr_like(tmp_path, order, 2, done=lambda count: None)
    for path in tmp_path.rglob("*.json*"):
        if path.name != "val.json":
            path.unlink()
    for other in (SplitSpec("val", seed=1, size=16), SplitSpec("val", size=24)):
        with pytest.raises(BcnError, match="was made with"):
            make.make_clevr_like(tmp_path, other, 2)
    assert make.make_clevr_like(tmp_path, order, 2, done=lambda count: None)


@needs_numba
def test_a_whole_set_is_checked_without_writing(tmp_path: Path) -> None:
    order = SplitSpec("train", size=16)
    assert make.make_clevr_like(tmp_path, order, 2, done=lambda count: None)
    (tmp_path / "parts" / "train.lock").unlink()
    before = _contents(tmp_path)
    check_directory(tmp_path)
    assert _contents(tmp_path) == before
    part = tmp_path / "parts" / "train-000000.jsonl"
    part.write_text(part.read_text().replace('"questions"', '"question"'))
    (tmp_path / "scenes" / "CLEVR_train_scenes.json").unlink()
    with pytest.raises(BcnError, match=r"train-000000.jsonl is damaged: remove it"):
        check_directory(tmp_path)


def test_a_seed_that_is_too_large_is_refused() -> None:
    with pytest.raises(BcnError, match="accepted are 0 to 18446744073709551615"):
        SplitSpec(seed=1 << 64)


def _contents(place: Path) -> dict[str, bytes]:
    """Every file; what a killed process left half written has a hidden name."""
    return {
        path.relative_to(place).as_posix(): path.read_bytes()
        for path in sorted(place.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }


def test_a_shard_that_is_not_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BcnError, match="accepted are 1/2 to 2/2"):
        make.make_clevr_like(tmp_path, SplitSpec(), 10, shard=(3, 2))
    for shard in ("3", "1/0", "0/2", "1/-2", "a/b"):
        with pytest.raises(BcnError, match=r"as in 3/8$"):
            run_bcn("clevr", "make", tmp_path, "--images", 2, "--shard", shard)


@pytest.mark.parametrize("split", ["../x", "a-b", ""])
def test_a_split_that_would_be_taken_for_something_else_is_refused(split: str, tmp_path: Path) -> None:
    with pytest.raises(BcnError, match="letters, digits and underscores"):
        run_bcn("clevr", "make", tmp_path, "--images", 2, "--split", split)
    assert not list(tmp_path.iterdir())


def test_without_numba_one_line_says_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['numba'] = None; from bcn.cli import main; main()"
    _, said = finish(start_python("-c", code, "clevr", "make", tmp_path, "--images", 1), 2)
    assert said.strip().splitlines()[-1].endswith("pip install -e '.[render]'")
    assert not list(tmp_path.iterdir())
