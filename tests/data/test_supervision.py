"""Auxiliary supervision: what the scenes of images and the programs of questions say."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.annotated_clevr import IMAGES, annotated_clevr
from torch import Tensor

from bcn.data.clevr_like.scene import make_scene
from bcn.data.clevr_like.supervision import VALUES, ReferentDataset, open_objects, open_referents
from bcn.data.dataset import Batch
from bcn.data.registry import open_dataset
from bcn.data.vqa.load import open_questions
from bcn.errors import BcnError

WORDS = {
    "size": {"large": "large big", "small": "small tiny"},
    "color": {color: color for color in ("gray", "red", "blue", "green", "brown", "purple", "cyan", "yellow")},
    "material": {"metal": "metal metallic shiny", "rubber": "rubber matte"},
    "shape": {
        "cube": "cube cubes block blocks",
        "sphere": "sphere spheres ball balls",
        "cylinder": "cylinder cylinders",
    },
}
"""what each word of a noun says, written here a second time"""
RELATIONS = {"left", "right", "front", "behind", "same", "or"}


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BCN_CACHE", str(tmp_path / "cache"))
    return annotated_clevr(tmp_path / "clevr-like-v1")


def referents(made: Path) -> ReferentDataset:
    return open_referents(made, open_questions(made, "train"))


def targets(batch: Batch) -> tuple[Tensor, Tensor]:
    assert batch.auxiliary is not None
    return batch.auxiliary["point"], batch.auxiliary["role"]


@pytest.mark.parametrize("spoil", [lambda scene: scene.pop("objects"), lambda scene: scene["objects"][0].pop("color")])
def test_scenes_that_are_not_whole_are_one_sentence(made: Path, spoil: Callable[[dict[str, Any]], object]) -> None:
    path = made / "scenes" / "CLEVR_train_scenes.json"
    content = json.loads(path.read_text())
    spoil(content["scenes"][3])
    path.write_text(json.dumps(content))
    with pytest.raises(BcnError, match=r"scene 3: .*objects"):
        open_objects(made, open_questions(made, "train"), (8, 8))


@pytest.mark.parametrize("grid", [(8, 8), (16, 16)])
def test_object_supervision_asks_what_is_where(made: Path, grid: tuple[int, int]) -> None:
    dataset = open_objects(made, open_questions(made, "train"), grid)
    assert len(dataset) == IMAGES["train"]
    batch, cells = dataset[np.arange(len(dataset))], set()
    assert batch.question is not None
    assert batch.kind is not None
    for row, shade in enumerate(batch.image[:, 0, 0, 0].tolist()):
        objects = {  # pixels are those of the 480 x 320 that a scene speaks of
            (thing["pixel_coords"][0], thing["pixel_coords"][1]): thing for thing in make_scene(shade)["objects"]
        }
        asked = set()
        for (x, y, kind), answer in zip(batch.question[row].tolist(), batch.answer[row].tolist(), strict=True):
            name = dataset.kinds[int(kind)]
            if name == "exist":
                column, line = int(x * grid[1]), int(y * grid[0])
                inside = [at for at in objects if at[0] * grid[1] // 480 == column and at[1] * grid[0] // 320 == line]
                assert dataset.answers[answer] == ("yes" if inside else "no")
                cells.add((row % 4, column, line))
            elif answer >= 0:
                (at,) = (at for at in objects if abs(at[0] - 480 * x) + abs(at[1] - 320 * y) < 0.01)
                parts = {"column": Fraction(at[0] * grid[1], 480), "row": Fraction(at[1] * grid[0], 320)}
                expected = f"part {int(parts[name] % 1 * 5)}" if name in parts else objects[at][name]
                assert dataset.answers[answer] == expected
                asked.add((at, name))
        assert len(asked) == 6 * len(objects)
    assert len(cells) == grid[0] * grid[1]  # four images in a row ask about every cell once
    assert batch.kind.equal(batch.question[..., 2].long())


def test_points_are_the_centres_of_objects_then_background(made: Path) -> None:
    dataset, background = referents(made), 0
    batch = dataset[np.arange(len(dataset))]
    point_BT2, role_BQTR = targets(batch)
    assert role_BQTR.shape == (*batch.answer.shape, point_BT2.shape[1], 2 * 16)
    for point_T2, shade in zip(point_BT2, batch.image[:, 0, 0, 0].tolist(), strict=True):
        pixels = [thing["pixel_coords"][:2] for thing in make_scene(shade)["objects"]]
        points = point_T2[~point_T2.isnan().any(1)]
        objects = torch.tensor(pixels) / torch.tensor([480, 320])
        assert torch.allclose(points[: len(objects)], objects)
        assert (points[len(objects) :, None] - objects).abs().amax(-1).min() > 0.125  # no object is there, or near
        background += len(points) - len(objects)
    assert 3 * len(dataset) < background <= 4 * len(dataset)


def each_question(dataset: ReferentDataset) -> list[tuple[dict[str, Any], str, str, str, Tensor]]:
    """The scene, words, answer and kind of every question, and the roles (T, R) of its points."""
    batch = dataset[np.arange(len(dataset))]
    assert batch.question is not None
    assert batch.kind is not None
    _, role_BQTR = targets(batch)
    return [
        (
            dict(make_scene(shade)),
            " ".join(dataset.vocabulary.decode(batch.question[row, place])),
            dataset.answers[answer],
            dataset.kinds[int(batch.kind[row, place])],
            role_BQTR[row, place],
        )
        for row, shade in enumerate(batch.image[:, 0, 0, 0].tolist())
        for place, answer in enumerate(batch.answer[row].tolist())
        if answer >= 0
    ]


def sets_of(role_TR: Tensor) -> tuple[set[int], set[int]]:
    """The first and the second referents."""
    first, second = (set(role_TR[:, column].nonzero().flatten().tolist()) for column in (0, 16))
    return first, second


def test_referents_lead_to_the_answer(made: Path) -> None:
    for scene, _, answer, kind, role_TR in each_question(referents(made)):
        first, second = sets_of(role_TR)
        match kind.split("_"):
            case ["count"]:
                assert answer == str(len(first))
            case ["exist"]:
                assert answer == ("yes" if first else "no")
            case ["equal", "integer"]:
                assert answer == ("yes" if len(first) == len(second) else "no")
            case ["less", _]:
                assert answer == ("yes" if len(first) < len(second) else "no")
            case ["greater", _]:
                assert answer == ("yes" if len(first) > len(second) else "no")
            case ["query", attribute]:
                (one,) = first
                assert answer == scene["objects"][one][attribute]
            case ["equal", attribute]:
                (one,), (other,) = first, second
                same = scene["objects"][one][attribute] == scene["objects"][other][attribute]
                assert answer == ("yes" if same else "no")


def test_a_referent_has_the_role_of_the_value_that_is_asked_for(made: Path) -> None:
    for scene, _, _, kind, role_TR in each_question(referents(made)):
        attribute = kind.partition("_")[2]
        for column, objects in zip((0, 16), sets_of(role_TR), strict=True):
            for number, roles in enumerate(role_TR[:, column + 1 : column + 16].tolist()):
                values = [VALUES[place] for place, role in enumerate(roles) if role]
                is_asked = attribute in WORDS and number in objects
                assert values == ([scene["objects"][number][attribute]] if is_asked else [])


def test_referents_without_relations_are_those_that_the_words_name(made: Path) -> None:
    plain = 0
    for scene, words, _, kind, role_TR in each_question(referents(made)):
        if kind in ("count", "exist") and not RELATIONS & set(words.split()):
            named = {
                (attribute, value)
                for word in words.split()
                for attribute, values in WORDS.items()
                for value, names in values.items()
                if word in names.split()
            }
            objects = enumerate(scene["objects"])
            fitting = {number for number, thing in objects if all(thing[of] == value for of, value in named)}
            assert sets_of(role_TR) == (fitting, set())
            plain += 1
    assert plain >= 5


def test_steps_are_asked_for_and_end_with_the_referents(made: Path) -> None:
    dataset, plain = open_referents(made, open_questions(made, "train"), steps=4), referents(made)
    batch, without = (each[np.arange(len(each))].auxiliary for each in (dataset, plain))
    assert batch is not None
    assert without is not None
    assert "step" not in without
    step_BQTS2 = batch["step"]
    assert step_BQTS2.shape == (*batch["role"].shape[:3], 4, 2)
    assert step_BQTS2[..., -1, :].equal(batch["role"][..., [0, 16]])  # of programs with at most three relations
    assert not step_BQTS2[..., 0, :].equal(step_BQTS2[..., -1, :])
    assert dataset.checksum() != plain.checksum()


def test_images_and_points_are_moved_and_mirrored_together(made: Path) -> None:
    """A bright pixel at each point stays at the point, unless it left the image."""
    dataset = referents(made)
    batch = dataset[np.arange(len(dataset))]
    point_BT2, role_BQTR = targets(batch)
    image, pixel = torch.zeros_like(batch.image), (point_BT2 * 128).long()
    valid = ~point_BT2.isnan().any(-1)
    for row in range(len(image)):
        for x, y in pixel[row][valid[row]].tolist():
            image[row, :, y, x] = 255
    point_BT2 = (pixel + 0.5) / 128 + torch.where(valid, 0, torch.nan)[..., None]
    batch = batch._replace(image=image, auxiliary={"point": point_BT2, "role": role_BQTR})
    moved = dataset.augment(batch, torch.Generator().manual_seed(1))
    moved_BT2, moved_role_BQTR = targets(moved)
    mirrored, compared = (moved_BT2[:, 0] - point_BT2[:, 0]).abs()[:, 0] > 17 / 128, 0
    assert 0 < mirrored.sum() < len(mirrored)
    for row in range(len(image)):
        for x, y in (moved_BT2[row][valid[row]] * 128).tolist():
            if 0 <= x < 128 and 0 <= y < 128:
                assert moved.image[row, 0, int(y), int(x)] == 255
                compared += 1
    assert compared > 40
    assert moved_BT2.isnan().any(-1).equal(~valid)
    assert moved_role_BQTR.equal(role_BQTR)


def test_a_data_set_says_whether_its_scenes_are_annotated(made: Path) -> None:
    annotated = open_dataset("clevr-like-v1", "train", data=made)
    objects, with_referents = annotated.object_supervision((8, 8)), annotated.referent_supervision()
    assert objects is not None
    assert with_referents is not None
    assert objects.checksum() == open_objects(made, open_questions(made, "train"), (8, 8)).checksum()
    assert with_referents.checksum() == referents(made).checksum() != annotated.checksum()
    plain = open_dataset("sort-of-clevr-v1", "train", images=1)
    assert plain.object_supervision((8, 8)) is None
    assert plain.referent_supervision() is None
