"""What clients cannot make the server hold or do: by a real server and bare sockets."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from helpers.small_weights import digit_weights
from PIL import Image

pytest.importorskip("fastapi", reason="needs the extra web")
pytest.importorskip("uvicorn", reason="needs the extra web")

from helpers.serving import serving

from bcn.web import app, limits, server

PATIENCE = 60
"""seconds: no test waits for time, only for what has to happen"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving(digit_weights()) as (address, _):
        yield address


def send(address: str, content: bytes) -> socket.socket:
    """A connection on which this was sent."""
    host, port = address.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), timeout=PATIENCE)
    connection.sendall(content)
    return connection


def upload(length: int, *headers: str) -> bytes:
    """The head of a request whose body has this length."""
    lines = ["POST /api/find HTTP/1.1", "Host: localhost", f"Content-Length: {length}", *headers]
    return "\r\n".join([*lines, "", ""]).encode()


def response(connection: socket.socket) -> tuple[int, http.client.HTTPMessage, bytes]:
    received = http.client.HTTPResponse(connection)
    received.begin()
    return received.status, received.headers, received.read()


def get(address: str, path: str = "/healthz") -> tuple[int, http.client.HTTPMessage, bytes]:
    with closing(send(address, f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())) as connection:
        return response(connection)


def get_until(address: str, status: int) -> None:
    """Ask until this is the answer: the server notices a moment later that a client has gone."""
    wait_until(lambda: get(address)[0] == status)


def wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_closed(connection: socket.socket) -> bool:
    """Wait until the server closes the connection, which has nothing more to say."""
    return connection.recv(1) == b""


def test_a_body_that_will_be_too_large_is_refused_before_it_comes(address: str) -> None:
    for headers in ((), ("Expect: 100-continue",)):
        with closing(send(address, upload(limits.MAX_BYTES + 1, *headers))) as connection:
            status, answer, body = response(connection)
            assert (status, answer["Connection"]) == (413, "close")
            assert "more than 8388608 bytes" in json.loads(body)["error"]
            assert is_closed(connection)


def test_a_body_has_to_come_in_time(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BODY_SECONDS", 0.2)
    with closing(send(address, upload(1000) + bytes(10))) as connection:
        status, _, body = response(connection)
        assert status == 408
        assert "the body took more than" in json.loads(body)["error"]
        assert is_closed(connection)


def test_requests_at_once_are_bounded() -> None:
    with serving(digit_weights(), max_requests=3) as (address, _), ExitStack() as held:
        for _ in range(3):
            held.enter_context(closing(send(address, upload(1000))))
        get_until(address, 503)
        status, headers, body = get(address)
        assert (status, headers["Retry-After"]) == (503, "1")
        assert "try again in a second" in json.loads(body)["error"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        held.close()
        get_until(address, 200)


def test_bytes_of_all_bodies_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[limits.Limits] = []

    def remember(*arguments: Any, **options: Any) -> limits.Limits:
        made.append(limits.Limits(*arguments, **options))
        return made[-1]

    monkeypatch.setattr(app, "Limits", remember)
    monkeypatch.setattr(limits, "MAX_HELD_BYTES", 1 << 20)
    part = bytes(700_000)
    with serving(digit_weights()) as (address, _):
        with closing(send(address, upload(len(part) + 1) + part)) as first:
            wait_until(lambda: made[0].held_bytes == len(part))
            with closing(send(address, upload(len(part) + 1) + part)) as second:
                status, headers, body = response(second)
                assert (status, headers["Retry-After"], headers["Connection"]) == (503, "1", "close")
                assert "uploads hold 1048576 bytes" in json.loads(body)["error"]
            first.sendall(b"x")  # and is answered, as soon as it is whole
            assert response(first)[0] == 422
        wait_until(lambda: made[0].held_bytes == 0)
        with closing(send(address, upload(len(part)) + part)) as third:
            assert response(third)[0] == 422


def test_connections_without_a_request_are_closed(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEAD_SECONDS", 1.0)
    with ExitStack() as held:
        silent, started, busy = (
            held.enter_context(closing(send(address, content)))
            for content in (b"", b"GET /healthz HTTP/1.1\r\nHost: loc", upload(3) + b"x")
        )
        assert is_closed(silent)
        assert is_closed(started)
        busy.sendall(b"yz")  # its head was complete
        assert response(busy)[0] == 422
        assert is_closed(busy)  # nothing followed


def test_what_is_no_http_is_answered_like_any_error(address: str) -> None:
    with closing(send(address, b"\x16\x03\x01 hello\r\n\r\n")) as connection:
        status, headers, body = response(connection)
        assert (status, headers["X-Content-Type-Options"]) == (400, "nosniff")
        assert set(json.loads(body)) == {"error"}


def test_files_are_served_while_a_model_thinks_and_gone_clients_are_not_answered(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on, answered, find = threading.Event(), threading.Event(), list[bytes](), app._find

    def find_slowly(reasoners: object, image: bytes) -> object:
        begun.set()
        assert go_on.wait(PATIENCE)
        answered.append(image)
        return find(reasoners, image)  # type: ignore[arg-type]

    monkeypatch.setattr(app, "_find", find_slowly)
    images = []
    for ink in (100, 150, 200):
        Image.new("L", (128, 128), ink).save(tmp_path / "image.png")
        images.append((tmp_path / "image.png").read_bytes())
    with ExitStack() as held:
        first = held.enter_context(closing(send(address, upload(len(images[0])) + images[0])))
        assert begun.wait(PATIENCE)
        send(address, upload(len(images[1])) + images[1]).close()
        third = held.enter_context(closing(send(address, upload(len(images[2])) + images[2])))
        for path in ("/", "/main.js", "/healthz", "/api/scene?seed=3"):
            assert get(address, path)[0] == 200
        go_on.set()
        assert response(first)[0] == response(third)[0] == 200
    assert answered == [images[0], images[2]]
