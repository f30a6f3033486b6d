"""Pages from elsewhere cannot use the server: not by name (DNS rebinding), not across sites, not in a frame."""

import socket
from pathlib import Path

import pytest
from helpers.command import exit_code, invoke_bcn
from helpers.small_weights import digit_weights
from PIL import Image

pytest.importorskip("fastapi", reason="needs the extra web")
pytest.importorskip("httpx", reason="needs httpx")

from fastapi.testclient import TestClient

import bcn
from bcn.web.app import STATIC, make_app
from bcn.web.mechanism import answer_scene
from bcn.web.schema import SceneRequest
from bcn.web.server import bind, to_url

HERE = "http://127.0.0.1:8000"


def client(host: str = "127.0.0.1") -> TestClient:
    return TestClient(make_app([], host=host), base_url=HERE)


@pytest.mark.parametrize(
    ("host", "served", "refused"),
    [
        ("127.0.0.1", ["127.0.0.1", "127.0.0.1:8000", "localhost:8000", "LOCALHOST", "[::1]:80"], ["10.0.0.7"]),
        ("::1", ["[::1]:8000", "localhost"], ["[::2]:8000", "::1"]),
        ("box.lab", ["box.lab:8000", "BOX.lab", "localhost:8000"], ["lab", "box.lab.evil.example", "xbox.lab"]),
        ("0.0.0.0", ["10.0.0.7:8000", "[fe80::1]:8000", f"{socket.gethostname()}:8000", "localhost"], ["box.lab"]),
        ("::", ["10.0.0.7:8000", "[::1]:8000"], ["box.lab"]),
    ],
)
def test_hosts(host: str, served: list[str], refused: list[str]) -> None:
    asked = client(host)
    for name in served:
        assert asked.get("/healthz", headers={"Host": name}).status_code == 200, name
    strange = (
        "",
        "evil.example",
        "evil.example:8000",
        "127.0.0.1.evil.example",
        "127.0.0.1@evil.example",
        "localhost/",
        "[",
        "a b",
    )
    for name in (*refused, *strange):  # fmt: skip
        for path in ("/healthz", "/", "/api/weights"):
            answer = asked.get(path, headers={"Host": name})
            assert answer.status_code == 400, name
            assert answer.json()["error"].startswith("this Host is not served")


@pytest.mark.parametrize(
    ("headers", "accepted"),
    [
        ({}, True),  # a program
        ({"Origin": HERE}, True),
        ({"Origin": HERE, "Sec-Fetch-Site": "same-origin"}, True),
        ({"Origin": "https://box.lab", "Sec-Fetch-Site": "same-origin"}, True),  # a proxy with another name
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Origin": "http://evil.example"}, False),
        ({"Origin": "http://127.0.0.1:3000"}, False),  # another server on this machine
        ({"Origin": "null"}, False),
        ({"Origin": "http://["}, False),  # no address: Python's parser stumbles over it
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "same-site"}, False),
        ({"Origin": HERE, "Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, False),
    ],
)
def test_only_the_servers_own_page_may_post(headers: dict[str, str], accepted: bool) -> None:
    answer = client().post("/api/reason", json={"objects": []}, headers=headers)
    assert answer.status_code == (422 if accepted else 403)
    assert ("another site" in answer.json()["error"]) == (not accepted)


def test_a_link_from_elsewhere_leads_to_the_page_but_a_frame_does_not() -> None:
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert client().get("/", headers=link).status_code == 200
    for change in ({"Sec-Fetch-Dest": "iframe"}, {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}):
        assert client().get("/", headers=link | change).status_code == 403


def test_every_answer_has_the_security_headers() -> None:
    asked = client()
    for answer, status in (
        (asked.get("/"), 200),
        (asked.get("/main.js"), 200),
        (asked.get("/docs"), 200),
        (asked.get("/healthz"), 200),
        (asked.get("/openapi.json"), 200),
        (asked.get("/nothing"), 404),
        (asked.get("/healthz/", follow_redirects=False), 307),
        (asked.delete("/"), 405),
        (asked.get("/api/scene"), 422),
        (asked.post("/api/find", content=b""), 422),
        (asked.post("/api/reason", headers={"Content-Length": str(9 << 20)}), 413),
        (asked.get("/", headers={"Host": "evil.example"}), 400),
        (asked.post("/api/reason", headers={"Origin": "http://evil.example"}), 403),
    ):
        assert answer.status_code == status
        policy = answer.headers["Content-Security-Policy"]
        for part in ("default-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"):
            assert part in policy
        assert "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "same-origin"


def test_the_page_has_no_inline_code_and_reads_no_html() -> None:
    for path in STATIC.iterdir():
        text = path.read_text()
        for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "'unsafe-inline'"):
            assert forbidden not in text, path.name
        if path.suffix == ".html":
            assert ' style="' not in text
            assert " onclick" not in text


def serve_once(monkeypatch: pytest.MonkeyPatch, *options: object) -> tuple[str, str]:
    """What `bcn serve` prints on standard output and error, with a server that ends at once."""
    monkeypatch.setattr("uvicorn.Server.run", lambda self, sockets: None)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10**9)
    result = invoke_bcn("serve", "--port", 0, "--weights", digit_weights(), *options)
    return result.stdout, result.stderr


def test_only_an_address_that_others_can_reach_is_warned_about(monkeypatch: pytest.MonkeyPatch) -> None:
    out, warned = serve_once(monkeypatch, "--host", "0.0.0.0")
    assert Image.MAX_IMAGE_PIXELS == 4096**2  # a GIF file of 12,000 x 12,000 took 142 MB before its size was known
    assert out.startswith("http://0.0.0.0:")
    assert warned.count("\n") == 1
    assert "without a password" in warned
    assert serve_once(monkeypatch)[1] == serve_once(monkeypatch, "--host", "localhost")[1] == ""


@pytest.mark.skipif(not socket.has_ipv6, reason="needs IPv6")
def test_ipv6(monkeypatch: pytest.MonkeyPatch) -> None:
    out, warned = serve_once(monkeypatch, "--host", "::1")
    assert out.startswith("http://[::1]:")
    assert not warned
    with bind("::1", 0) as listener:
        assert listener.getsockname()[0] == "::1"
    assert to_url("box.lab", 80) == "http://box.lab:80"


def test_addresses_that_cannot_be_listened_on_are_refused_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for options in (("--port", taken.getsockname()[1]), ("--host", "no.such.host.invalid"), ("--host", "a" * 70)):
            assert exit_code("serve", "--weights", digit_weights(), *options) == 2
            assert "choose another --host or --port" in capsys.readouterr().err


def test_models_are_warm_before_the_server_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    answer, scene, listen = bcn.Reasoner.answer_with_broadcast, answer_scene, socket.socket.listen

    def answer_noted(self: bcn.Reasoner, *arguments: object) -> object:
        events.append(self.family)
        return answer(self, *arguments)  # type: ignore[arg-type]

    def scene_noted(reasoner: bcn.Reasoner, request: SceneRequest) -> object:
        events.append(reasoner.family)
        return scene(reasoner, request)

    def listen_noted(self: socket.socket, *arguments: int) -> None:
        events.append("listen")
        listen(self, *arguments)

    monkeypatch.setattr(bcn.Reasoner, "answer_with_broadcast", answer_noted)
    monkeypatch.setattr("bcn.web.models.answer_scene", scene_noted)
    monkeypatch.setattr(socket.socket, "listen", listen_noted)
    names = ("sort-of-clevr/multirn", "clevr/multirn-h")
    serve_once(monkeypatch, *(part for name in names for part in ("--weights", name)))
    assert events == ["scaled-mnist", "sort-of-clevr", "clevr", "listen"]
