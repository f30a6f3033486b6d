"""Scenes of the page for weights of Sort-of-CLEVR v2: names, ternary questions, and true answers."""

from typing import Any

import numpy as np
import pytest
from helpers.small_weights import scene_run, scene_v2_run

pytest.importorskip("fastapi", reason="needs the extra web")
pytest.importorskip("httpx", reason="needs httpx")

from fastapi.testclient import TestClient

import bcn
from bcn.data.sort_of_clevr import COLOURS, SHAPES
from bcn.data.sort_of_clevr_v2 import make_sort_of_clevr_v2
from bcn.inference.coding import CODINGS
from bcn.web.app import make_app
from bcn.web.models import warm_up
from bcn.web.scenes import draw, to_questions
from bcn.web.schema import SceneObject
from bcn.web.static_site import describe
from bcn.web.truth import true_answer

ADDRESS = "http://127.0.0.1:8000"
V2 = CODINGS[1]
PAIR = [
    {"colour": "red", "shape": "square", "x": 10, "y": 10},
    {"colour": "red", "shape": "circle", "x": 40, "y": 10},
    {"colour": "blue", "shape": "square", "x": 60, "y": 10},
    {"colour": "cyan", "shape": "circle", "x": 25, "y": 12},
]
LINE = "Is there an object on the line between the red square and the red circle?"


@pytest.fixture(scope="module")
def client() -> TestClient:
    reasoners = [bcn.load(path) for path in (scene_run(), scene_v2_run(), scene_v2_run("multirn-rounds-wild-hour"))]
    warm_up(reasoners)
    return TestClient(make_app(reasoners), base_url=ADDRESS)


def to_objects(scenes: Any, row: int) -> list[SceneObject]:
    return [
        SceneObject.model_validate(
            {
                "colour": COLOURS[scenes.colour[row, k]],
                "shape": SHAPES[scenes.shape[row, k]],
                "x": int(scenes.x[row, k]),
                "y": int(scenes.y[row, k]),
            }
        )
        for k in np.flatnonzero(scenes.present[row])
    ]


def test_pictures_names_and_truth_are_those_of_the_data_set() -> None:
    """Every clear question about scenes of 1 to 12 objects, asked in its own words."""
    dataset = make_sort_of_clevr_v2("sort-of-clevr-v2", "test", images=25, objects=(1, 12), questions="all")
    batch, scenes, asked = dataset[np.arange(25)], dataset.scenes(np.arange(25)), 0
    assert batch.question is not None
    for row in range(25):
        objects, there = to_objects(scenes, row), batch.answer[row] >= 0
        assert np.array_equal(draw(objects), batch.image[row].permute(1, 2, 0).numpy())
        sentences = [dataset.to_sentence(bits) for bits in batch.question[row, there]]
        questions, encoded = to_questions(objects, sentences, V2)
        assert np.array_equal(encoded.numbers_QD, batch.question[row, there].numpy())
        assert encoded.texts == sentences
        truth = [true_answer(objects, question) for question in questions]
        assert truth == [dataset.answers[answer] for answer in batch.answer[row, there].tolist()]
        asked += len(truth)
    assert asked > 1000


def test_all_that_name_one_object_are_asked(client: TestClient) -> None:
    found = client.post("/api/reason", json={"objects": PAIR, "weights": bcn.load(scene_v2_run()).name}).json()
    asked = [(each["kind"], each["question"].rstrip("?").split(" the ")[-1]) for each in found["answers"]]
    assert asked[0] == ("shape", "blue object")  # the names of the others say their shapes
    assert [(kind, answer["objects"]) for (kind, _), answer in zip(asked, found["answers"], strict=True)][1:4] == [
        ("left", [2]),
        ("left", [0]),
        ("left", [1]),
    ]
    assert len(asked) == 1 + 5 * 3
    assert found["broadcast"] is not None


@pytest.mark.parametrize("row", ["multirn-h-wild", "multirn-rounds-wild-hour"])
def test_ternary_questions_have_answers_and_truth(client: TestClient, row: str) -> None:
    reasoner = bcn.load(scene_v2_run(row))
    request = {"objects": PAIR, "questions": [LINE, "is the blue square left"], "weights": reasoner.name}
    line, left = client.post("/api/reason", json=request).json()["answers"]
    assert (line["kind"], line["objects"], line["truth"]) == ("line", [0, 1], "yes")
    assert left["question"] == "Is the blue object on the left?", "the shortest name"
    image = draw([SceneObject.model_validate(each) for each in PAIR])
    (expected,) = reasoner.ask(image, LINE)
    assert line["answer"] == expected.answer
    assert line["probability"] == pytest.approx(expected.probability, abs=1e-5)
    unclear = client.post("/api/reason", json=request | {"objects": [*PAIR[:3], PAIR[3] | {"y": 16}]}).json()
    assert unclear["answers"][0]["truth"] is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"questions": ["is red left"]}, "there is more than one red object"),
        ({"questions": ["is the blue circle left"]}, "there is no blue circle in this scene"),
        ({"questions": ["how many objects in the box between blue and the blue square"]}, "those of one object"),
        ({"objects": [PAIR[0], PAIR[0] | {"x": 30}]}, "look like another one"),
        ({"weights": None}, "two objects have the same colour"),
    ],
)
def test_what_cannot_be_named_is_one_sentence(client: TestClient, change: dict[str, Any], message: str) -> None:
    response = client.post("/api/reason", json={"objects": PAIR, "weights": bcn.load(scene_v2_run()).name} | change)
    assert response.status_code == 422
    assert message in response.json()["error"]


def test_the_static_site_knows_the_bits_of_a_model() -> None:
    for path, coding in zip((scene_run(), scene_v2_run()), CODINGS, strict=True):
        bits = describe(bcn.load(path))["language"]["bits"]
        assert list(bits) == list(coding.kinds[:6])
        assert bits["count"][4] == coding.from_sentence("how many have the same shape as gray").tolist()
