"""Shapes, masks, boxes and depth, against formulas of their own: ray and quadric, quartic roots, planes."""

import json
import math
import runpy
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from bcn.data.clevr_like import camera, scene
from bcn.data.clevr_like.extras import EXTRAS, annotate, depth_of, mask_of, parse_extras, run_lengths
from bcn.data.clevr_like.rerender import RenderOrder, render_file
from bcn.data.clevr_like.rules import SHAPES, SIZES, SceneRules, parse_rules
from bcn.data.clevr_like.scene import make_scene
from bcn.data.clevr_like.visibility import first_hits
from bcn.errors import BcnError
from bcn.io import data_root, write_json

if has_numba := find_spec("numba") is not None:
    from bcn.data.clevr_like.render import Survey, render_scene, survey_scene

needs_numba = pytest.mark.skipif(not has_numba, reason="needs the extra render")
EYE = np.array(camera.POSITION)
WIDTH, HEIGHT = 240, 160
TUBE = 0.35


def thing(shape: str, x: float = 0.5, y: float = -0.5, size: str = "large") -> dict[str, Any]:
    height = SIZES[size] * (TUBE if shape == "torus" else 1)
    return {
        "shape": shape,
        "color": "red",
        "material": "rubber",
        "size": size,
        "rotation": 0.6,
        "3d_coords": [x, y, height],
    }


def survey(*objects: dict[str, Any]) -> "Survey":
    return survey_scene(
        {"image_index": 0, "objects": list(objects), "camera": EYE.tolist()}, width=WIDTH, height=HEIGHT
    )


def ray(row: int, column: int) -> np.ndarray:
    """Through the centre of a pixel; its component along the camera's axis is 1, so its length counts depth."""
    right, up, forward = camera.axes(EYE)
    focal = camera.FOCAL / camera.WIDTH * WIDTH
    return np.asarray(forward + (column + 0.5 - WIDTH / 2) / focal * right + (HEIGHT / 2 - row - 0.5) / focal * up)


def hit_torus(start: np.ndarray, way: np.ndarray) -> float:
    """The least root of (|p|^2 + R^2 - r^2)^2 = 4 R^2 (x^2 + y^2)."""
    big = 1 - TUBE
    square = [way @ way, 2 * start @ way, start @ start + big**2 - TUBE**2]
    flat = [way[:2] @ way[:2], 2 * start[:2] @ way[:2], start[:2] @ start[:2]]
    roots = np.roots(np.polysub(np.polymul(square, square), 4 * big**2 * np.array(flat)))
    real = roots[abs(roots.imag) < 1e-7].real
    return float(real.min()) if len(real) else math.inf


def hit_cone(start: np.ndarray, way: np.ndarray) -> float:
    """The least t with x^2 + y^2 = ((1 - z) / 2)^2 between bottom and tip, or on the disc at the bottom."""
    w, dw = (1 - start[2]) / 2, -way[2] / 2
    roots = np.roots([way[:2] @ way[:2] - dw**2, 2 * (start[:2] @ way[:2] - w * dw), start[:2] @ start[:2] - w**2])
    hits = [t for t in roots[abs(roots.imag) < 1e-9].real if -1 <= start[2] + t * way[2] <= 1]
    bottom = (-1 - start[2]) / way[2]
    if np.hypot(*(start + bottom * way)[:2]) <= 1:
        hits.append(bottom)
    return float(min(hits)) if hits else math.inf


@needs_numba
@pytest.mark.parametrize("shape", ["torus", "cone"])
@pytest.mark.parametrize(("x", "y", "size"), [(-1.5, 2.0, "large"), (1.0, -1.0, "small")])
def test_rays_hit_where_the_equations_say(shape: str, x: float, y: float, size: str) -> None:
    """Surfaces are found to a thousandth, and a cone has rounded edges: silhouettes may differ by a pixel's share."""
    one = thing(shape, x, y, size)
    found, hit = survey(one), {"torus": hit_torus, "cone": hit_cone}[shape]
    rows, columns = (found.number == 0).nonzero()
    wrong, errors = 0, []
    for row in range(rows.min() - 2, rows.max() + 3, 2):
        for column in range(columns.min() - 2, columns.max() + 3):
            depth = hit((EYE - one["3d_coords"]) / SIZES[size], ray(row, column) / SIZES[size])
            if math.isfinite(depth) != (found.number[row, column] == 0):
                wrong += 1
            elif math.isfinite(depth):
                errors.append(abs(depth - found.depth[row, column]))
    assert wrong < (0.01 if shape == "torus" else 0.03) * len(rows)  # every second row was looked at
    assert np.median(errors) < 2e-3
    assert np.quantile(errors, 0.9) < 0.02


@needs_numba
def test_a_sphere_is_nearest_by_its_radius_and_as_large_as_its_outline() -> None:
    ball = thing("sphere", 1.0, 0.5)
    found = survey(ball)
    inside = found.number == 0
    away = np.array(ball["3d_coords"]) - EYE
    distance = float(np.linalg.norm(away))
    depth = float(camera.project(EYE, ball["3d_coords"])[2])
    assert found.depth[inside].min() == pytest.approx(depth - 0.7, abs=2e-3)
    off_axis, half = math.acos(away @ -EYE / distance / np.linalg.norm(EYE)), math.asin(0.7 / distance)
    major = (math.tan(off_axis + half) - math.tan(off_axis - half)) / 2
    minor = major * math.sqrt(1 - (math.sin(off_axis) / math.cos(half)) ** 2)
    assert inside.sum() == pytest.approx(math.pi * major * minor * (camera.FOCAL / 2) ** 2, rel=0.01)


@needs_numba
def test_depth_of_planes() -> None:
    """The ground, and the top of a cube, are where a ray meets a plane."""
    found = survey(thing("cube", 0.0, 0.0))
    column, row, _ = (camera.project(EYE, [0.0, 0.0, 1.4]) / 2).astype(int).tolist()
    for at, level in (((row, column), 1.4), ((HEIGHT - 5, 7), 0.0), ((3, 100), 0.0)):
        expected = (level - EYE[2]) / ray(*at)[2]
        assert found.number[at] == (0 if level else -1)
        assert found.depth[at] == pytest.approx(expected, abs=5e-3)


@needs_numba
@pytest.mark.parametrize("shape", SHAPES)
def test_visibility_without_the_tracer_agrees_with_it(shape: str) -> None:
    """Edges are rounded in one and sharp in the other."""
    one = thing(shape, -0.5, 1.0)
    shown = first_hits([one], EYE, 2)
    tracer = survey(one).number
    assert (shown == tracer).mean() > 0.997
    assert (shown == 0).sum() == pytest.approx((tracer == 0).sum(), rel=0.07)


@needs_numba
def test_a_torus_is_lit_like_other_surfaces_and_shades_its_hole() -> None:
    """Its ridge is as bright as the top of a cylinder: rays that leave it do not hit it at once."""
    (x, y), pictures, found = (2.2, -2.2), {}, {}
    for shape in ("torus", "cylinder"):
        made = {"image_index": 0, "objects": [thing(shape, x, y)], "camera": EYE.tolist()}
        pictures[shape] = render_scene(made, width=WIDTH, height=HEIGHT).mean(axis=2)
        found[shape] = survey_scene(made, width=WIDTH, height=HEIGHT).number
    right = camera.axes(EYE)[0]
    ridge = np.array([x, y]) + 0.65 * 0.7 * right[:2]
    tops = {"torus": [*ridge, 2 * TUBE * 0.7], "cylinder": [x, y, 1.4]}
    levels = []
    for shape, top in tops.items():
        column, row, _ = (camera.project(EYE, top) / 2).astype(int).tolist()
        levels.append(pictures[shape][row : row + 2, column - 1 : column + 2].mean())
    assert levels[0] == pytest.approx(levels[1], rel=0.1)
    middle = int(camera.project(EYE, [x, y, 0.0])[0] / 2)
    inside = found["torus"][:, middle]
    first, last = (inside == 0).nonzero()[0][[0, -1]]
    hole = first + (inside[first:last] == -1).nonzero()[0]
    assert len(hole) > 0
    assert pictures["torus"][hole, middle].mean() < 0.7 * pictures["torus"][first, 20]


@needs_numba
def test_masks_boxes_and_depth_say_the_same() -> None:
    made = make_scene(0, rules=SceneRules(SHAPES, objects=(8, 8)))
    found = survey_scene(made, width=96, height=64)
    mask, depth = mask_of(found), depth_of(found)
    assert set(np.unique(mask)) == set(range(9))
    for annotation in annotate(made, found):
        number = annotation["object"]
        rows, columns = (mask == number + 1).nonzero()
        left, top, width, height = annotation["bbox"]
        assert (left, top, left + width, top + height) == (
            columns.min(),
            rows.min(),
            columns.max() + 1,
            rows.max() + 1,
        )
        assert annotation["area"] == len(rows)
        assert SHAPES[annotation["category_id"] - 1] == made["objects"][number]["shape"]
        pixels: list[bool] = []
        for position, length in enumerate(annotation["segmentation"]["counts"]):
            pixels += [position % 2 == 1] * length
        assert np.array_equal(np.array(pixels).reshape(96, 64).T, mask == number + 1)
    assert depth.dtype == np.uint16
    assert depth / 1000 == pytest.approx(found.depth, abs=5.1e-4)


@needs_numba
def test_the_picture_of_the_docs_is_up_to_date(tmp_path: Path) -> None:
    docs = Path(__file__).parents[2] / "docs"
    runpy.run_path(str(docs / "make_pictures.py"))["draw_rendered"](tmp_path)
    drawn, kept = (
        np.asarray(Image.open(place / "clevr-like-extras.png").convert("RGB"), float)
        for place in (tmp_path, docs / "images")
    )
    assert np.abs(drawn - kept).mean() < 0.5


def test_run_lengths_begin_with_what_is_off() -> None:
    assert run_lengths(np.ones((2, 2), bool)) == [0, 4]
    assert run_lengths(np.zeros((2, 3), bool)) == [6]
    assert run_lengths(np.array([[1, 0], [0, 1]], bool)) == [0, 1, 2, 1]


def test_twenty_objects_are_apart_visible_and_in_relation() -> None:
    made = make_scene(1, rules=SceneRules(SHAPES, objects=(20, 20)))
    objects = made["objects"]
    assert len(objects) == 20
    shown = first_hits(objects, made["camera"], 4)
    for index, one in enumerate(objects):
        assert (shown == index).sum() * 16 >= 100
        for other in objects[:index]:
            apart = math.dist(one["3d_coords"][:2], other["3d_coords"][:2])
            assert apart >= SIZES[one["size"]] + SIZES[other["size"]] + 0.05
        for pair in (("left", "right"), ("front", "behind")):
            sides = [made["relationships"][name][index] for name in pair]
            assert sorted(sides[0] + sides[1] + [index]) == list(range(20))


def test_placing_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scene, "CROWD_ATTEMPTS", 1)
    monkeypatch.setattr("bcn.data.clevr_like.crowd.GAP", 3.0)
    with pytest.raises(BcnError, match=r"scene 4 of val .* 1 attempts to place 15 objects.* failed; ask for fewer"):
        make_scene(4, split="val", rules=SceneRules(objects=(15, 15)))


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        (("cube,pyramid", "red", "3"), "unknown shape 'pyramid'"),
        (("", "red", "3"), "--shapes : give different names"),
        (("cube,cube", "red", "3"), "--shapes cube,cube: give different names"),
        (("cube", "teal", "3"), "--colors teal: accepted are gray, .* as in teal:#2aa198"),
        (("cube", "teal:#2aa19", "3"), "--colors teal:#2aa19: accepted"),
        (("cube", "red,red:#ff0000", "3"), "red stands there twice"),
        (("cube", "left:#ff0000", "3"), "left has another meaning in questions"),
        (("cube", "red", "3-21"), "--objects 3-21: give how many"),
        (("cube", "red", "0"), "--objects 0: give how many"),
        (("cube", "red", "5-4"), "--objects 5-4: give how many"),
        (("cube", "red", "many"), "--objects many: give how many"),
    ],
)
def test_rules_that_cannot_be_kept(rules: tuple[str, str, str], says: str) -> None:
    with pytest.raises(BcnError, match=says):
        parse_rules(*rules, reserved=lambda name: name == "left")


def test_extras_have_names() -> None:
    with pytest.raises(BcnError, match="unknown extra 'mask': did you mean 'masks'"):
        parse_extras("mask")
    with pytest.raises(BcnError, match="neither images nor extras"):
        RenderOrder(Path("out"), images=False)


@needs_numba
@pytest.mark.data("clevr")
def test_original_scenes_are_rendered_where_they_say(tmp_path: Path) -> None:
    """At its pixel coordinates, each object shows itself, or another that is nearer."""
    path = tmp_path / "scenes.json"
    source = data_root() / "clevr" / "scenes" / "CLEVR_val_scenes_500.json"
    few = json.loads(source.read_text())["scenes"][:20]
    write_json(path, {"scenes": few})
    order = RenderOrder(tmp_path / "out", extras=",".join(EXTRAS), images=False)
    assert render_file(path, order, done=lambda count: None) == 20
    assert not (tmp_path / "out" / "images").exists()
    own = 0
    for made in few:
        with Image.open(tmp_path / "out" / "masks" / "val" / made["image_filename"]) as image:
            mask = np.asarray(image)
        with Image.open(tmp_path / "out" / "depth" / "val" / made["image_filename"]) as image:
            depth = np.asarray(image) / 1000
        for number, one in enumerate(made["objects"], 1):
            column, row, away = one["pixel_coords"]
            own += mask[row, column] == number
            assert mask[row, column] > 0
            assert away - 1.5 < depth[row, column] < away if mask[row, column] == number else depth[row, column] < away
    assert own > 0.8 * sum(len(made["objects"]) for made in few)


@needs_numba
@pytest.mark.parametrize(
    "change",
    [
        lambda made: made["objects"][0].update(shape="pyramid"),
        lambda made: made["objects"][0].update(color="teal"),
        lambda made: made["objects"][0].update(rgb=[1, 2]),
        lambda made: made["objects"][0].update(rgb=[1, 2, 256]),
        lambda made: made["objects"][0].update({"3d_coords": [0, 0, 0]}),
        lambda made: made["objects"][0].update({"3d_coords": [0, 0, 1e9]}),
        lambda made: made["objects"][0].pop("rotation"),
        lambda made: made.update(camera=[0, 0, 5]),
        lambda made: made.update(camera="above"),
        lambda made: made.update(lights=[[1, 2, 3]]),
        lambda made: made.update(objects=[]),
        lambda made: made.update(image_index=-1),
        lambda made: made.update(image_filename="../x.png"),
        lambda made: made.update(split="../x"),
        lambda made: (made.pop("camera"), made["objects"][0].update(pixel_coords=[1e300, 0, 1])),
    ],
)
def test_scenes_that_cannot_be_rendered(change: Any, tmp_path: Path) -> None:
    scenes = [make_scene(0), make_scene(1)]
    change(scenes[1])
    write_json(tmp_path / "scenes.json", {"scenes": scenes})
    with pytest.raises(BcnError, match="scene 1: it cannot be rendered; it needs image_index"):
        render_file(tmp_path / "scenes.json", RenderOrder(tmp_path / "out", 16, 16))
    assert not (tmp_path / "out").exists()
