"""Sets of other shapes, colors and numbers of objects: made, asked about, opened, rendered again."""

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from helpers.command import run_bcn
from PIL import Image

from bcn.data.clevr_like.grammars import GRAMMARS
from bcn.data.clevr_like.program import answer
from bcn.data.clevr_like.rules import parse_rules
from bcn.data.clevr_like.scene import make_scene
from bcn.data.clevr_like.spec import SplitSpec
from bcn.data.registry import open_dataset
from bcn.errors import BcnError

needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason="needs the extra render")
CUSTOM = ("--shapes", "cone,torus", "--colors", "red,teal:#2aa198", "--objects", "2-4")


@pytest.fixture(scope="module")
def custom(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("custom") / "set"
    for split, images in (("train", 3), ("val", 1)):
        options = ("--split", split, "--images", images, "--size", 48, "--grammar", "clevr-like-v2")
        run_bcn("clevr", "make", place, *options, *CUSTOM, "--extras", "depth,masks,boxes")
    return place


@needs_numba
def test_a_custom_set_has_its_own_name(custom: Path) -> None:
    dataset = open_dataset("clevr-like-custom", "train", data=custom, size=48)
    assert (dataset.name, len(dataset)) == ("clevr-like-custom", 3)
    assert dataset[[0]].image.shape == (1, 3, 48, 48)
    assert dataset.referent_supervision() is None
    for name in ("clevr-like-v1", "clevr-like-v2"):
        with pytest.raises(BcnError, match=f"holds clevr-like-custom, not {name}"):
            open_dataset(name, "train", data=custom)
    with pytest.raises(BcnError, match="has no split 'test': it has train, val; make it"):
        open_dataset("clevr-like-custom", "test", data=custom)
    with pytest.raises(BcnError, match="was made with"):
        run_bcn("clevr", "make", custom, "--images", 3, "--size", 48, "--grammar", "clevr-like-v2", *CUSTOM[:4])


@needs_numba
def test_extras_lie_beside_the_images(custom: Path) -> None:
    coco = json.loads((custom / "annotations" / "instances_train.json").read_text())
    scenes = json.loads((custom / "scenes" / "CLEVR_train_scenes.json").read_text())["scenes"]
    assert coco["info"]["version"] == "clevr-like-custom"
    assert [image["file_name"] for image in coco["images"]] == [scene["image_filename"] for scene in scenes]
    assert len({annotation["id"] for annotation in coco["annotations"]}) == len(coco["annotations"])
    assert len(coco["annotations"]) == sum(len(scene["objects"]) for scene in scenes)
    for scene in scenes:
        with Image.open(custom / "masks" / "train" / scene["image_filename"]) as image:
            assert image.mode == "P"
            assert set(np.unique(np.asarray(image))) == set(range(len(scene["objects"]) + 1))
        with Image.open(custom / "depth" / "train" / scene["image_filename"]) as image:
            assert 5000 < np.asarray(image).min() < np.asarray(image).max() < 40_000
        assert {thing["shape"] for thing in scene["objects"]} <= {"cone", "torus"}
        assert all(("rgb" in thing) == (thing["color"] == "teal") for thing in scene["objects"])


@needs_numba
def test_what_is_missing_is_made_again_and_a_file_of_scenes_renders_the_same(custom: Path, tmp_path: Path) -> None:
    mask = custom / "masks" / "train" / "CLEVR_train_000001.png"
    content = mask.read_bytes()
    mask.unlink()
    options = ("--images", 3, "--size", 48, "--grammar", "clevr-like-v2", *CUSTOM, "--extras", "masks,boxes,depth")
    assert "whole" in run_bcn("clevr", "make", custom, *options)
    assert mask.read_bytes() == content

    scenes, out = custom / "scenes" / "CLEVR_train_scenes.json", tmp_path / "out"
    again = ("clevr", "render", scenes, "--out", out, "--size", "48x48", "--extras", "masks,boxes,depth")
    assert "3 scenes" in run_bcn(*again)
    for folder in ("images", "masks", "depth"):
        for path in (custom / folder / "train").iterdir():
            assert (out / folder / "train" / path.name).read_bytes() == path.read_bytes()
    instances = [json.loads((place / "annotations" / "instances_train.json").read_text()) for place in (custom, out)]
    assert instances[0]["annotations"] == instances[1]["annotations"]
    with pytest.raises(BcnError, match=r"render\.json was made with"):
        run_bcn(*again[:5], "--size", "64x48")
    with pytest.raises(BcnError, match="has files, and was not made by this command"):
        run_bcn("clevr", "render", scenes, "--out", custom)
    with pytest.raises(BcnError, match="as in 480x320"):
        run_bcn("clevr", "render", scenes, "--out", out, "--size", "48")


@pytest.mark.parametrize("grammar", GRAMMARS)
def test_questions_speak_of_the_shapes_and_colors(grammar: str) -> None:
    rules = parse_rules("cube,cone,torus", "red,teal:#2aa198", "11-16", reserved=lambda name: False)
    asked, values = "", {"yes", "no", *map(str, range(17)), "large", "small", "rubber", "metal"}
    for index in range(8):
        scene = make_scene(index, rules=rules)
        questions = GRAMMARS[grammar](scene)
        assert len(questions) == 10
        for question in questions:
            asked += question["question"] + "\n"
            assert question["answer"] == answer(question["program"], scene)
            assert question["answer"] in values | {"cube", "cone", "torus", "red", "teal"}
    assert {"cone", "cones", "torus", "toruses", "teal"} <= set(asked.lower().replace("?", " ").split())
    assert not {"sphere", "ball", "cylinder", "blue", "toruss"} & set(asked.lower().replace("?", " ").split())


@pytest.mark.parametrize("grammar", GRAMMARS)
def test_questions_about_objects_that_are_all_alike_end(grammar: str) -> None:
    scene = make_scene(0, rules=parse_rules("cube", "red", "9", reserved=lambda name: False))
    assert len(GRAMMARS[grammar](scene)) > 0


def test_a_specification_says_what_was_chosen() -> None:
    assert SplitSpec("val", objects="3-10").info == SplitSpec("val").info
    spec = SplitSpec("val", version="clevr-like-v2", shapes="cone", extras="depth,masks")
    assert spec.info["version"] == "clevr-like-custom"
    assert SplitSpec.from_info(spec.info) == spec
    assert "--grammar clevr-like-v2 --shapes cone --extras masks,depth" in spec.options
    assert SplitSpec("val", extras="masks").info["version"] == "clevr-like-v1"
