"""The server's JSON interface: answers beside the truth, images in, and errors as one sentence."""

import base64
import html
import io
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.command import exit_code, run_bcn
from helpers.page_scenes import to_scenes
from helpers.small_weights import digit_weights, scene_run, word_weights
from PIL import Image

pytest.importorskip("fastapi", reason="needs the extra web")
pytest.importorskip("httpx", reason="needs httpx")

from fastapi.testclient import TestClient

import bcn
import bcn.inference.shipped
from bcn.data.clevr_like.render import render_scene
from bcn.data.clevr_like.scene import make_scene
from bcn.data.drawn import make_drawn
from bcn.data.sort_of_clevr import (
    COLOURS,
    KINDS,
    answer_all,
    draw_scenes,
    make_sort_of_clevr,
    question_bits,
)
from bcn.data.sort_of_clevr.questions import ANSWERS
from bcn.inference import DEFAULT_WEIGHTS
from bcn.web.app import STATIC, make_app
from bcn.web.cost import cost_table
from bcn.web.rendered import pictures_for
from bcn.web.scenes import SceneQuestion, draw, random_scene
from bcn.web.schema import SceneObject
from bcn.web.truth import true_answer
from bcn.web.typical import typical

SCENE = [
    {"colour": "red", "shape": "square", "x": 10, "y": 10},
    {"colour": "green", "shape": "circle", "x": 25, "y": 10},
    {"colour": "blue", "shape": "square", "x": 60, "y": 60},
    {"colour": "gray", "shape": "circle", "x": 60, "y": 40},
]
ADDRESS = "http://127.0.0.1:8000"
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "ask.md"


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


def test_the_truth_is_that_of_the_package_and_counts_further_objects() -> None:
    for seed in range(20):
        objects = random_scene(seed)
        expected = answer_all(to_scenes(objects))[0]
        truth = [true_answer(objects, SceneQuestion(KINDS[n // 6], (n % 6,))) for n in range(36)]
        assert truth == [ANSWERS[each] for each in expected]
        assert np.array_equal(draw(objects), draw_scenes(to_scenes(objects))[0].transpose(1, 2, 0))
    red, other = SCENE[0], {"colour": "cyan", "shape": "circle", "x": 12, "y": 10}
    pair = [SceneObject.model_validate(each) for each in (red, other)]
    about_red = [SceneQuestion(kind, (0,)) for kind in ("closest", "furthest", "count")]
    assert [true_answer(pair, question) for question in about_red] == ["circle", "circle", "1"]
    assert true_answer(pair[:1], about_red[0]) is None
    image = draw(pair)
    assert image[10, 16].tolist() == [0, 200, 220]
    assert image[10, 13].tolist() == [255, 0, 0], "further objects are under the others"


def test_muting_replaces_the_vector_by_its_mean(client: TestClient) -> None:
    """Against an independent computation: the vectors of many scenes, averaged, through the layers one by one."""
    found = client.post("/api/reason", json={"objects": SCENE, "mute": True, "channel": 7}).json()
    reasoner = bcn.load(scene_run())
    model: Any = reasoner.model
    scenes = make_sort_of_clevr("sort-of-clevr-stream", "train", images=128)
    image = draw([SceneObject.model_validate(each) for each in SCENE])
    asked = question_bits()[[n for n in range(36) if COLOURS[n % 6] in {each["colour"] for each in SCENE}]]
    with torch.inference_mode():
        mean = model.broadcast.pooled(model.features(reasoner.preprocessing(scenes[range(128)].image)))[0].mean(0)
        objects = model.features(reasoner.pixels(image))
        planes = model.broadcast.coordinates(objects)
        n = objects[0].shape[1:].numel()
        seen = [objects[0].flatten(1).T, mean.expand(n, -1), planes.flatten(1).T]
        for number, answer in enumerate(found["muted"]):
            rows = torch.cat([*seen, torch.from_numpy(asked[number]).expand(n, -1)], dim=1)
            for layer in model.relation.g:
                rows = torch.nn.functional.linear(rows, layer.weight.flatten(1), layer.bias).relu()
            probability = model.f(rows.sum(0)).softmax(-1)
            assert answer["probability"] == pytest.approx(float(probability.max()), abs=1e-4)
        response = model.broadcast.before_pooling(objects)[0, 7].flatten()
    assert found["broadcast"]["response"] == pytest.approx(response.tolist(), abs=1e-3)
    assert found["broadcast"]["mean"] == pytest.approx(mean.tolist(), abs=1e-3)
    assert found["broadcast"]["value"][7] == pytest.approx(max(found["broadcast"]["response"]), abs=2e-3)


def test_a_request_runs_the_network_once() -> None:
    """Counted at the CNN's first layer: answers and activation map come from one forward pass."""
    scenes, digits = bcn.load(scene_run()), bcn.load(digit_weights())
    calls: list[str] = []
    for reasoner in (scenes, digits):
        first = next(module for module in reasoner.model.modules() if isinstance(module, torch.nn.Conv2d))
        first.register_forward_hook(lambda *_, name=reasoner.family: calls.append(name))
    client = TestClient(make_app([scenes, digits]), base_url=ADDRESS)
    typical(scenes)
    calls.clear()
    reasoned = client.post("/api/reason", json={"objects": SCENE, "mute": True, "channel": 3}).json()
    assert reasoned["broadcast"] is not None
    assert reasoned["muted"] is not None
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
    assert with_bcn["broadcast"]["rows"] == pytest.approx(
        [0, *((4 * k - 1.5) / 128 for k in range(1, 32)), 1], abs=1e-4
    )
    assert baseline["broadcast"] is None


def test_unknown_words_are_named() -> None:
    alone = TestClient(make_app([bcn.load("clevr/multirn-h")]), base_url=ADDRESS)
    asked = ["What colour is the dog?", "What colour is the grey ball?"]
    sent = alone.post("/api/ask", params={"question": asked}, content=png(Image.new("RGB", (48, 32)))).json()
    assert [each.get("unknown") for each in sent["answers"]] == [["dog"], None]
    assert [each["question"] for each in sent["answers"]] == ["what color is the ?", "what color is the gray ball"]


def test_a_rendered_scene_comes_with_questions_and_their_answers(client: TestClient) -> None:
    pytest.importorskip("numba", reason="needs the extra render")
    found = client.get("/api/rendered", params={"seed": 3}).json()
    picture = Image.open(io.BytesIO(base64.b64decode(found["image"])))
    assert np.array_equal(np.array(picture), render_scene(make_scene(3, split="val"), width=240, height=160))
    assert len(found["questions"]) == 10
    for each in found["questions"]:
        assert each["question"].endswith("?")
        assert each["answer"]


def test_pictures_are_those_that_a_model_knows() -> None:
    both = [bcn.load(name) for name in ("clevr/multirn-h", "drawn/multirn-rounds")]
    app = TestClient(make_app(both), base_url=ADDRESS)
    found = app.get("/api/rendered", params={"seed": 3, "weights": "drawn/multirn-rounds"}).json()
    picture = np.array(Image.open(io.BytesIO(base64.b64decode(found["image"]))))
    drawn = make_drawn("val")
    assert np.array_equal(picture.transpose(2, 0, 1), drawn[[3]].image[0].numpy())
    assert [each["question"] for each in found["questions"]] == [each.text for each in drawn.questions(3)]
    answers = app.post(
        "/api/ask",
        params={"question": [each["question"] for each in found["questions"]], "weights": "drawn/multirn-rounds"},
        content=png(Image.fromarray(picture)),
    ).json()["answers"]
    right = sum(one["answer"] == other["answer"] for one, other in zip(answers, found["questions"], strict=True))
    assert right >= 8
    unknown = app.get("/api/rendered", params={"seed": 3, "weights": "drawn/multirn"})
    assert unknown.status_code == 422
    assert "no weights called 'drawn/multirn' are loaded" in unknown.json()["error"]


def test_pictures_of_other_data_are_those_that_a_family_began_with() -> None:
    for model, expected in (("clevr/multirn", "clevr-like-v1"), ("drawn/multirn-rounds", "drawn-v1")):
        reasoner = bcn.load(word_weights(model))
        reasoner.description["data"] = "own"
        assert pictures_for(reasoner) == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"objects": []}, "objects: List should have at least 1"),
        ({"objects": [SCENE[0] | {"colour": "cyan"}]}, "no object has a colour that questions name"),
        ({"objects": SCENE, "channel": 256}, "has channels 0 to 255"),
        ({"objects": [SCENE[0], SCENE[0]]}, "two objects have the same colour"),
        ({"objects": [SCENE[0], SCENE[1] | {"x": 70}]}, "objects.1.x: "),
        ({"objects": [SCENE[0], SCENE[1] | {"colour": "white"}]}, "objects.1.colour: "),
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
        links = text.replace('href="https://arxiv.org/abs/1712.02517"', "")  # to follow, not to load
        assert "https://" not in links
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
        "objects",
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


def test_code_on_the_page_is_that_of_the_readme(client: TestClient) -> None:
    """Which is run by the tests of the documentation."""
    text = html.unescape(client.get("/guide.html").text)
    code = re.search(r"<pre[^>]*><code>(.*)</code></pre>", text, re.DOTALL)
    assert code
    assert code.group(1) in (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_costs_on_the_page_are_those_of_the_record() -> None:
    record = json.loads((Path(__file__).parents[2] / "results/bench/scaling.json").read_text())
    refresh = "run `python -m bcn.web.cost results/bench/scaling.json`"
    assert json.loads((STATIC / "cost.json").read_text()) == cost_table(record), refresh


def test_the_layers_are_shown(client: TestClient) -> None:
    for name in ("broadcast.py", "relation.py"):
        shown = client.get(f"/source/{name}")
        assert shown.headers["Content-Type"].startswith("text/plain")
        assert "Equation" in shown.text
    assert client.get("/source/app.py").status_code == 404


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
    """The call that the guide documents; all shipped weights are loaded, in the order of `bcn serve`."""
    (call,) = re.findall('curl ".*/api/ask.*', GUIDE.read_text())
    _, url, _, _, _, header = shlex.split(call)
    index = bcn.inference.shipped.list_weights()
    names = sorted(index, key=lambda name: -index[name]["macs"])
    client = TestClient(make_app([bcn.load(name) for name in names]), base_url=ADDRESS)
    image = make_sort_of_clevr("sort-of-clevr-stream", "train", images=1)[[4]].image[0].permute(1, 2, 0).numpy()
    Image.fromarray(image).save(tmp_path / "scene.png")
    at_the_command_line = json.loads(run_bcn("ask", tmp_path / "scene.png", "is red left", "--json"))
    content, headers = (tmp_path / "scene.png").read_bytes(), dict([header.split(": ")])
    sent = client.post(url.removeprefix(ADDRESS), content=content, headers=headers).json()
    red = client.get("/api/scene", params={"seed": 4}).json()["objects"][0]
    assert sent["weights"] == at_the_command_line["weights"] == DEFAULT_WEIGHTS
    assert sent["answers"] == at_the_command_line["answers"]
    assert sent["answers"][0]["answer"] == ("yes" if red["x"] < 37 else "no")


def test_serve_without_weights_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bcn.inference.shipped, "WEIGHTS", tmp_path)
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


def test_a_large_body_of_json_is_not_parsed(client: TestClient) -> None:
    """Its values take far more memory than its bytes, and parsing them holds up everybody else."""
    scene = {"objects": SCENE, "questions": ["is red left" + " " * 989] * 100}
    assert client.post("/api/reason", json=scene).status_code == 200
    for kind in ("application/json", "Application/Problem+JSON; charset=utf-8"):
        body = b'{"objects":[' + b"{}," * 400_000 + b"{}]}"
        said = client.post("/api/reason", content=body, headers={"Content-Type": kind})
        assert said.status_code == 413, said.text
        assert "more than 1048576 bytes" in said.json()["error"]
