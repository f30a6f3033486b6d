"""Scenes: the original ones as a check of camera and relations, ours against the rules, both seen by other formulas."""

import hashlib
import json
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from bcn.data.clevr_like import camera
from bcn.data.clevr_like.rules import COLORS, MATERIALS, SIZES
from bcn.data.clevr_like.scene import make_scene, relationships
from bcn.data.clevr_like.visibility import visible_pixels
from bcn.data.vqa.clevr import ATTRIBUTES
from bcn.io import data_root

FILES = ("CLEVR_train_scenes_1000.json", "CLEVR_val_scenes_500.json")


@pytest.fixture(scope="module")
def original() -> list[dict[str, Any]]:
    return [s for name in FILES for s in json.loads((data_root() / "clevr" / "scenes" / name).read_text())["scenes"]]


@pytest.fixture(scope="module")
def ours() -> list[dict[str, Any]]:
    return [make_scene(index) for index in range(120)]


@pytest.mark.data("clevr")
def test_relations_of_the_original_scenes_follow_from_their_coordinates(original: list[dict[str, Any]]) -> None:
    assert len(original) == 1500
    for scene in original:
        computed = relationships(scene["objects"], scene["directions"])
        for name, stored in scene["relationships"].items():
            assert [sorted(found) for found in stored] == computed[name]


@pytest.mark.data("clevr")
def test_directions_are_those_of_the_original_scenes(original: list[dict[str, Any]]) -> None:
    ours = camera.directions()
    for scene in original[::50]:
        for name, direction in scene["directions"].items():
            assert direction == pytest.approx(ours[name], abs=1e-4)


@pytest.mark.data("clevr")
def test_camera_reproduces_every_original_pixel_to_its_rounding(original: list[dict[str, Any]]) -> None:
    for scene in original[::10]:
        eye = camera.locate(scene["objects"])
        assert np.abs(np.subtract(eye, camera.POSITION)).max() < camera.JITTER + 0.02
        seen = np.array([thing["pixel_coords"] for thing in scene["objects"]])
        projected = camera.project(eye, [thing["3d_coords"] for thing in scene["objects"]])
        assert np.abs(projected - seen)[:, :2].max() < 0.55
        assert np.abs(projected - seen)[:, 2].max() < 1e-3


@pytest.mark.data("clevr")
def test_objects_are_drawn_as_the_original_ones_are(original: list[dict[str, Any]], ours: list[dict[str, Any]]) -> None:
    for attribute, values in (("size", 2), ("color", 8), ("material", 2), ("shape", 3)):
        shares = []
        for scenes in (original, ours):
            counts = Counter(thing[attribute] for scene in scenes for thing in scene["objects"])
            assert len(counts) == values
            total = sum(counts.values())
            shares.append({value: (n / total, n) for value, n in counts.items()})
        for value, (share, _) in shares[0].items():
            spread = math.sqrt(share * (1 - share) / sum(n for _, n in shares[1].values()))
            assert abs(shares[1][value][0] - share) < 5 * spread


def test_objects_keep_their_distances(ours: list[dict[str, Any]]) -> None:
    assert {len(scene["objects"]) for scene in ours} == set(range(3, 11))
    for scene in ours:
        right, behind = scene["directions"]["right"][:2], scene["directions"]["behind"][:2]
        for number, a in enumerate(scene["objects"]):
            assert a["shape"] in ATTRIBUTES["shape"]
            assert a["color"] in COLORS
            assert a["material"] in MATERIALS
            assert a["3d_coords"][2] == SIZES[a["size"]]
            assert max(map(abs, a["3d_coords"][:2])) <= 3
            for b in scene["objects"][:number]:
                offset = np.subtract(a["3d_coords"][:2], b["3d_coords"][:2])
                assert np.hypot(*offset) >= a["3d_coords"][2] + b["3d_coords"][2] + 0.25
                assert min(abs(offset @ right), abs(offset @ behind)) >= 0.4


def test_relations_are_opposites_and_complete(ours: list[dict[str, Any]]) -> None:
    for scene in ours:
        everyone = set(range(len(scene["objects"])))
        for one, other in (("left", "right"), ("front", "behind")):
            for index in everyone:
                here, there = (set(scene["relationships"][name][index]) for name in (one, other))
                assert not here & there
                assert here | there == everyone - {index}
                assert all(index in scene["relationships"][other][neighbour] for neighbour in here)


def test_left_is_left_in_the_picture() -> None:
    eye = camera.POSITION
    towards = camera.directions()
    for name, column, row in (("left", -1, 0), ("right", 1, 0), ("front", 0, 1), ("behind", 0, -1)):
        moved = camera.project(eye, towards[name]) - camera.project(eye, [0, 0, 0])
        assert np.sign(moved[:2].round(2)).tolist() == [column, row]


def test_every_object_is_visible(ours: list[dict[str, Any]]) -> None:
    for scene in ours:
        assert visible_pixels(scene["objects"], scene["camera"]).min() >= 200


def _thing(shape: str, x: float, y: float, size: str = "large") -> dict[str, Any]:
    return {"shape": shape, "3d_coords": [x, y, SIZES[size]], "rotation": 0.0, "size": size}


def test_visible_pixels_of_a_sphere_are_the_area_of_its_outline() -> None:
    """The outline is where a cone around the line to the centre meets the image plane: an ellipse."""
    eye, ratios = np.array(camera.POSITION), []
    for x, y in np.random.default_rng(0).uniform(-2, 2, (40, 2)).tolist():
        away = np.array([x, y, 0.7]) - eye
        distance = np.linalg.norm(away)
        off_axis, half = math.acos(away @ -eye / distance / np.linalg.norm(eye)), math.asin(0.7 / distance)
        major = (math.tan(off_axis + half) - math.tan(off_axis - half)) / 2
        minor = major * math.sqrt(1 - (math.sin(off_axis) / math.cos(half)) ** 2)
        area = math.pi * major * minor * camera.FOCAL**2
        ratios.append(visible_pixels([_thing("sphere", x, y)], eye)[0] / area)
    assert np.abs(np.array(ratios) - 1).max() < 0.05  # the grid is coarse, but fair
    assert np.mean(ratios) == pytest.approx(1, abs=0.005)


def test_what_stands_behind_is_hidden() -> None:
    towards = np.array(camera.directions()["front"])
    (x, y), (back_x, back_y) = 1.5 * towards[:2], -0.3 * towards[:2]
    near, far = _thing("cube", x, y), _thing("sphere", back_x, back_y, "small")
    alone = visible_pixels([far], camera.POSITION)[0]
    for objects in ([near, far], [far, near]):
        shown = dict(zip((thing["shape"] for thing in objects), visible_pixels(objects, camera.POSITION), strict=True))
        assert shown["sphere"] < alone / 2
        assert shown["cube"] == visible_pixels([near], camera.POSITION)[0]


def test_a_scene_is_decided_by_seed_split_and_index_alone() -> None:
    assert make_scene(5) == make_scene(5)
    assert len({json.dumps(s["objects"]) for s in (make_scene(5), make_scene(6), make_scene(5, seed=1))}) == 3
    assert make_scene(5, split="val")["objects"] != make_scene(5)["objects"]


def test_clevr_like_v1_is_frozen(ours: list[dict[str, Any]]) -> None:
    """A changed generator is a new name: clevr-like-v2."""
    text = json.dumps([scene["objects"] for scene in ours[:20]], sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "a41cf4ddc2e71424"
