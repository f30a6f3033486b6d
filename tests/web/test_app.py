"""The server's JSON interface: answers beside the truth, images in, and errors as one sentence."""

import base64
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.command import exit_code, run_bcn
from helpers.small_weights import digit_weights, scene_run
from PIL import Image

pytest.importorskip("fastapi", reason="needs the extra web")
pytest.importorskip("httpx", reason="needs httpx")

from fastapi.testclient import TestClient

import bcn
import bcn.inference.reasoner
from bcn.data.clevr_like.render import render_scene
from bcn.data.clevr_like.scene import make_scene
from bcn.data.sort_of_clevr import make_sort_of_clevr
from bcn.inference import DEFAULT_WEIGHTS
from bcn.web.app import STATIC, make_app

SCENE = [
    {"colour": "red", "shape": "square", "x": 10, "y": 10},
    {"colour": "green", "shape": "circle", "x": 25, "y": 10},
    {"colour": "blue", "shape": "square", "x": 60, "y": 60},
    {"colour": "gray", "shape": "circle", "x": 60, "y": 40},
]
ADDRESS = "http://127.0.0.1:8000"


@pytest.fixture(scope="module")
def client() -> TestClient:
    weights = (scene_run(), digit_weights(), digit_weights("scaled-mnist/baseline"))
    return TestClient(make_app([bcn.load(path) for path in weights]), base_url=ADDRESS)


def png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def test_weights_say_what_they_are(client: TestClient) -> None:
    found = client.get("/api/weights").json()
    assert [(each["family"], each["has_bcn"], each["scale"]) for each in found] == [
        ("sort-of-clevr", True, "smoke"),
        ("scaled-mnist", True, "smoke"),
        ("scaled-mnist", False, "smoke"),
    ]


def test_truth_of_a_scene_that_is_clear_to_the_eye(client: TestClient) -> None:
    found = client.post("/api/reason", json={"objects": SCENE}).json()
    truth = {(each["kind"], each["colour"]): each["truth"] for each in found["answers"]}
    assert len(truth) == 24
    assert {colour: truth["shape", colour] for colour in ("red", "green")} == {"red": "square", "green": "circle"}
    assert [truth["left", colour] for colour in ("red", "blue")] == ["yes", "no"]
    assert [truth["above", colour] for colour in ("red", "gray")] == ["yes", "no"]
    assert [truth["closest", colour] for colour in ("red", "blue")] == ["circle", "circle"]
    assert [truth["furthest", colour] for colour in ("red", "green")] == ["square", "square"]
    assert truth["count", "gray"] == "2"


def test_answers_about_a_scene_are_those_about_its_image(client: TestClient) -> None:
    objects = client.get("/api/scene", params={"seed": 4}).json()["objects"]
    assert objects == client.get("/api/scene", params={"seed": 4}).json()["objects"]
    assert objects != client.get("/api/scene", params={"seed": 5}).json()["objects"]
    image = make_sort_of_clevr("sort-of-clevr-stream", "train", images=1)[[4]].image[0].permute(1, 2, 0).numpy()
    sentences = ["how many have the same shape as the orange object", "Is the blue one above the middle?"]
    asked = client.post("/api/reason", json={"objects": objects, "questions": sentences}).json()
    content = png(Image.fromarray(image))
    sent = client.post("/api/ask", params={"question": sentences}, content=content).json()
    expected = bcn.load(scene_run()).ask(image, sentences)
    for mine, scene, picture in zip(expected, asked["answers"], sent["answers"], strict=True):
        assert scene["question"] == picture["question"] == mine.question
        assert scene["answer"] == picture["answer"] == mine.answer
        assert scene["probability"] == pytest.approx(mine.probability, abs=1e-5)
        assert picture["probability"] == pytest.approx(mine.probability, abs=1e-5)
    broadcast = bcn.load(scene_run()).broadcast(image)
    position = np.array(asked["broadcast"]["position"])
    assert len(position) == 256
    assert np.array_equal(np.bincount(position[position >= 0], minlength=100), broadcast.counts().reshape(-1))


def test_a_request_runs_the_network_once() -> None:
    """Counted at the CNN's first layer: answers and activation map come from one forward pass."""
    scenes, digits = bcn.load(scene_run()), bcn.load(digit_weights())
    calls: list[str] = []
    for reasoner in (scenes, digits):
        first = next(module for module in reasoner.model.modules() if isinstance(module, torch.nn.Conv2d))
        first.register_forward_hook(lambda *_, name=reasoner.family: calls.append(name))
    client = TestClient(make_app([scenes, digits]), base_url=ADDRESS)
    reasoned = client.post("/api/reason", json={"objects": SCENE}).json()
    assert reasoned["broadcast"] is not None
    assert calls == ["sort-of-clevr"]
    found = client.post("/api/find", content=png(Image.new("L", (128, 128)))).json()
    assert found["detections"][0]["broadcast"] is not None
    assert calls == ["sort-of-clevr", "scaled-mnist"]


def test_digits_are_found_by_every_model(client: TestClient) -> None:
    image = Image.new("L", (128, 128))
    image.paste(255, (80, 20, 110, 60))
    found = client.post("/api/find", content=png(image), headers={"Content-Type": "image/png"}).json()["detections"]
    with_bcn, baseline = found
    assert with_bcn["answer"] == "7"
    assert with_bcn["centre"] == pytest.approx([95 / 128, 40 / 128], abs=0.04)
    assert len(with_bcn["others"]) == 9
    assert with_bcn["broadcast"]["rows"] == 32
    assert baseline["broadcast"] is None


def test_a_rendered_scene_comes_with_questions_and_their_answers(client: TestClient) -> None:
    pytest.importorskip("numba", reason="needs the extra render")
    found = client.get("/api/rendered", params={"seed": 3}).json()
    picture = Image.open(io.BytesIO(base64.b64decode(found["image"])))
    assert np.array_equal(np.array(picture), render_scene(make_scene(3, split="val"), width=240, height=160))
    assert len(found["questions"]) == 10
    for each in found["questions"]:
        assert each["question"].endswith("?")
        assert each["answer"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"objects": SCENE[:1]}, "objects: List should have at least 2"),
        ({"objects": [SCENE[0], SCENE[0]]}, "two objects have the same colour"),
        ({"objects": [SCENE[0], SCENE[1] | {"x": 70}]}, "objects.1.x: "),
        ({"objects": [SCENE[0], SCENE[1] | {"colour": "pink"}]}, "objects.1.colour: "),
        ({"objects": SCENE, "questions": ["why?"]}, "ask about one colour"),
        ({"objects": SCENE, "questions": ["is yellow left?"]}, "there is no yellow object"),
        ({"objects": SCENE, "weights": "other"}, "no weights for sort-of-clevr called 'other'"),
    ],
)
def test_bad_scenes_are_answered_in_one_sentence(client: TestClient, change: dict[str, Any], message: str) -> None:
    response = client.post("/api/reason", json=change)
    assert response.status_code == 422
    assert message in response.json()["error"]


def test_bad_images_are_answered_in_one_sentence(client: TestClient) -> None:
    image = png(Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64), dtype=np.uint8)))
    wide = png(Image.new("L", (5000, 10)))
    for content in (b"", b"text", image[:200], image[:-2000], wide):
        response = client.post("/api/find", content=content, headers={"Content-Type": "image/png"})
        assert response.status_code == 422
        assert set(response.json()) == {"error"}


def test_every_refusal_is_one_sentence_that_says_where(client: TestClient) -> None:
    scene = {"objects": SCENE, "questions": ["x" * 1001]}
    as_json = {"Content-Type": "application/json"}
    for answer, status, message in (
        (client.post("/api/reason", content=b"{", headers=as_json), 422, "the body is not JSON"),
        (client.post("/api/reason", content=b"[" * 100_000, headers=as_json), 400, "POST /api/reason: "),
        (client.post("/api/reason", json=[]), 422, "the body: "),
        (client.post("/api/find", content=b""), 422, "the body: "),
        (client.post("/api/reason", json=scene), 422, "questions.0: "),
        (client.post("/api/ask", params={"question": "x" * 1001}, content=b"x"), 422, "question.0: "),
        (client.get("/api/nothing"), 404, "GET /api/nothing: "),
        (client.delete("/api/ask"), 405, "DELETE /api/ask: "),
    ):
        assert answer.status_code == status
        assert set(answer.json()) == {"error"}
        assert answer.json()["error"].startswith(message)


def test_the_page_and_its_document(client: TestClient) -> None:
    page = client.get("/")
    assert page.status_code == 200
    assert "default-src 'self'" in page.headers["Content-Security-Policy"]
    for path in STATIC.iterdir():
        text = path.read_text()
        assert "https://" not in text
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
        assert client.get(f"/{path.name}").text == text
    document = client.get("/openapi.json").json()
    assert set(document["paths"]) == {
        "/api/weights",
        "/api/scene",
        "/api/reason",
        "/api/ask",
        "/api/find",
        "/api/rendered",
        "/healthz",
    }
    body = document["paths"]["/api/find"]["post"]["requestBody"]["content"]
    assert list(body) == ["application/octet-stream"]
    schemas = document["components"]["schemas"]
    assert set(schemas["CheckedAnswer"]["required"]) == {
        "kind",
        "colour",
        "question",
        "answer",
        "probability",
        "others",
        "truth",
    }
    for path in document["paths"].values():
        for method, operation in path.items():
            answers = {
                code: each["content"]["application/json"]["schema"] for code, each in operation["responses"].items()
            }
            of_body = {"408", "413"} if method == "post" else set()
            assert set(answers) == {"200", "400", "403", "404", "422", "503"} | of_body
            assert "$ref" in json.dumps(answers.pop("200"))
            for schema in answers.values():
                assert schema == {"$ref": "#/components/schemas/ErrorResponse"}
    for name in ("SceneRequest", "ErrorResponse"):
        assert '"examples"' in json.dumps(schemas[name])
    for parameter in document["paths"]["/api/ask"]["post"]["parameters"]:
        assert '"examples"' in json.dumps(parameter)


def test_methods(client: TestClient) -> None:
    """HEAD where there is GET; 405 names what there is; a page is no place for anything else."""
    for path in ("/", "/main.js", "/docs", "/openapi.json", "/healthz", "/api/weights", "/api/scene?seed=1"):
        whole, head = client.get(path), client.head(path)
        assert (head.status_code, head.headers["Content-Type"]) == (200, whole.headers["Content-Type"])
        for method in ("POST", "DELETE"):
            refused = client.request(method, path)
            assert refused.status_code == 405
            assert set(refused.headers["Allow"].split(", ")) == {"GET", "HEAD"}
    for path in ("/api/ask", "/api/find", "/api/reason"):
        for method in ("GET", "HEAD", "PUT", "OPTIONS"):
            refused = client.request(method, path)
            assert (refused.status_code, refused.headers["Allow"]) == (405, "POST")
    assert client.get("/healthz").json() == {"status": "ok"}


def test_what_is_misspelt_is_not_ignored(client: TestClient) -> None:
    image = png(Image.new("L", (128, 128)))
    for answer, field in (
        (client.post("/api/reason", json={"objects": SCENE, "question": ["is red left"]}), "question"),
        (client.post("/api/reason", json={"objects": [SCENE[0], SCENE[1] | {"z": 1}]}), "objects.1.z"),
        (client.post("/api/find", params={"weight": "bcn"}, content=image), "weight"),
        (client.post("/api/ask", params={"question": "is red left", "weight": "x"}, content=image), "weight"),
        (client.get("/api/scene", params={"seed": 1, "split": "val"}), "split"),
    ):
        assert answer.status_code == 422
        assert answer.json()["error"] == f"{field}: there is no such field; /docs lists them"


def test_a_failure_of_the_program_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(seed: int) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("bcn.web.app.random_scene", fail)
    client = TestClient(make_app([]), base_url=ADDRESS, raise_server_exceptions=False)
    failed = client.get("/api/scene", params={"seed": 1})
    assert (failed.status_code, failed.json()) == (500, {"error": "the server failed: its log says why"})
    assert failed.headers["X-Content-Type-Options"] == "nosniff"


def test_a_question_without_weights_is_answered_as_bcn_ask_does(tmp_path: Path) -> None:
    """All shipped weights are loaded, in the order of `bcn serve`."""
    index = bcn.inference.reasoner.list_weights()
    names = sorted(index, key=lambda name: -index[name]["macs"])
    client = TestClient(make_app([bcn.load(name) for name in names]), base_url=ADDRESS)
    image = make_sort_of_clevr("sort-of-clevr-stream", "train", images=1)[[4]].image[0].permute(1, 2, 0).numpy()
    Image.fromarray(image).save(tmp_path / "scene.png")
    at_the_command_line = json.loads(run_bcn("ask", tmp_path / "scene.png", "is red left", "--json"))
    sent = client.post("/api/ask?question=is+red+left", content=(tmp_path / "scene.png").read_bytes()).json()
    red = client.get("/api/scene", params={"seed": 4}).json()["objects"][0]
    assert sent["weights"] == at_the_command_line["weights"] == DEFAULT_WEIGHTS
    assert sent["answers"] == at_the_command_line["answers"]
    assert sent["answers"][0]["answer"] == ("yes" if red["x"] < 37 else "no")


def test_serve_without_weights_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bcn.inference.reasoner, "WEIGHTS", tmp_path)
    assert exit_code("serve") == 2
    assert "no weights are shipped with this version" in capsys.readouterr().err


def test_no_more_of_a_body_is_read_than_is_accepted(client: TestClient) -> None:
    read = 0

    def endless() -> Iterator[bytes]:
        nonlocal read
        while read < 64 << 20:
            read += 1 << 20
            yield bytes(1 << 20)

    for address in ("/api/ask?question=is+red+left", "/api/find", "/api/reason"):
        read = 0
        said = client.post(address, content=endless())
        assert said.status_code == 413, said.text
        assert "more than 8388608 bytes" in said.json()["error"]
