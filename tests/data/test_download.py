"""Downloads: mirrors, checksums, parts that are continued."""

import hashlib
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from rich.progress import Progress, TaskID

from bcn.data.download import download
from bcn.errors import BcnError

CONTENT = bytes(range(256)) * 4000
MD5 = hashlib.md5(CONTENT).hexdigest()


class Mirror(ThreadingHTTPServer):
    """Serves CONTENT: /good with ranges, /no-range without, /breaks stops after 100,000 bytes, /bad gives others."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[tuple[str, str | None]] = []

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{path}"


class Handler(BaseHTTPRequestHandler):
    server: Mirror

    def do_GET(self) -> None:
        wanted, path = self.headers["Range"], self.path.strip("/")
        self.server.requests.append((path, wanted))
        content = CONTENT[::-1] if path == "bad" else CONTENT
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and path != "no-range" else 0
        if path == "missing":
            return self.send_error(404)
        if start >= len(content):
            return self.send_error(416)
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        self.wfile.write(content[start : start + 100_000] if path == "breaks" else content[start:])
        return None

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = Mirror()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def files(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir() if path.suffix != ".lock"}


def test_download_takes_the_file(mirror: Mirror, tmp_path: Path) -> None:
    path = download([mirror.url("good")], tmp_path / "new" / "set.gz", md5=MD5)
    assert path.read_bytes() == CONTENT
    assert files(tmp_path / "new") == {"set.gz"}


def test_download_does_not_touch_what_exists(mirror: Mirror, tmp_path: Path) -> None:
    (tmp_path / "set.gz").write_bytes(b"mine")
    download([mirror.url("good")], tmp_path / "set.gz", md5=MD5)
    assert (tmp_path / "set.gz").read_bytes() == b"mine"
    assert mirror.requests == []


def test_broken_download_is_continued(mirror: Mirror, tmp_path: Path) -> None:
    path = tmp_path / "set.gz"
    with pytest.raises(BcnError, match=r"set\.gz.*broke after 100,000 of 1,024,000 bytes.*put it at"):
        download([mirror.url("breaks")], path, md5=MD5)
    assert files(tmp_path) == {"set.gz.part"}
    download([mirror.url("good")], path, md5=MD5)
    assert path.read_bytes() == CONTENT
    assert mirror.requests[-1] == ("good", "bytes=100000-")
    assert files(tmp_path) == {"set.gz"}


def test_broken_download_is_continued_by_the_next_mirror(mirror: Mirror, tmp_path: Path) -> None:
    path = download([mirror.url("breaks"), mirror.url("good")], tmp_path / "set.gz", md5=MD5)
    assert path.read_bytes() == CONTENT
    assert mirror.requests == [("breaks", None), ("good", "bytes=100000-")]


def test_mirror_that_cannot_continue_begins_again(mirror: Mirror, tmp_path: Path) -> None:
    path = tmp_path / "set.gz"
    (tmp_path / "set.gz.part").write_bytes(CONTENT[:5000])
    download([mirror.url("no-range")], path, md5=MD5)
    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize("left", [CONTENT, CONTENT + b"more"])
def test_part_that_leaves_nothing_to_ask_for_is_taken_anew(mirror: Mirror, tmp_path: Path, left: bytes) -> None:
    (tmp_path / "set.gz.part").write_bytes(left)
    path = download([mirror.url("good")], tmp_path / "set.gz", md5=MD5)
    assert path.read_bytes() == CONTENT


def test_part_of_another_file_does_not_survive(mirror: Mirror, tmp_path: Path) -> None:
    path = tmp_path / "set.gz"
    (tmp_path / "set.gz.part").write_bytes(b"x" * 5000)
    download([mirror.url("good")], path, md5=MD5)
    assert path.read_bytes() == CONTENT
    assert mirror.requests == [("good", "bytes=5000-"), ("good", None)]


def test_bad_mirrors_are_passed_over(mirror: Mirror, tmp_path: Path) -> None:
    urls = [mirror.url(name) for name in ("bad", "missing", "good")]
    assert download(urls, tmp_path / "set.gz", md5=MD5).read_bytes() == CONTENT


def test_only_bad_mirrors_leave_nothing(mirror: Mirror, tmp_path: Path) -> None:
    with pytest.raises(BcnError) as caught:
        download([mirror.url("bad"), mirror.url("missing")], tmp_path / "set.gz", md5=MD5)
    assert "another checksum" in str(caught.value)
    assert "404" in str(caught.value)
    assert f"put it at {tmp_path / 'set.gz'}" in str(caught.value)
    assert files(tmp_path) == set()


def test_offline_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = Mirror()
    url = server.url("good")
    server.server_close()
    with pytest.raises(BcnError, match=r"cannot download set\.gz .*refused.*put it at"):
        download([url], tmp_path / "set.gz", md5=MD5)


class Redirect(BaseHTTPRequestHandler):
    """Sends whoever asks to the address in the path."""

    def do_GET(self) -> None:
        self.send_response(302)
        self.send_header("Location", self.path[1:])
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_a_redirect_does_not_leave_encryption(mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    named = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    made = ["-keyout", str(key), "-out", str(certificate)]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *made, *named]
    subprocess.run(command, check=True, capture_output=True)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with ThreadingHTTPServer(("127.0.0.1", 0), Redirect) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"https://localhost:{server.server_port}/{mirror.url('good')}"
        with pytest.raises(BcnError, match=r"it redirects to http://.*, which is not encrypted"):
            download([url], tmp_path / "set.gz", md5=None)
        server.shutdown()
    assert mirror.requests == []


def test_progress_reports_every_byte(mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    advance = Progress.advance

    def count(bar: Progress, task: TaskID, size: int) -> None:
        seen.append(size)
        advance(bar, task, size)

    monkeypatch.setattr(Progress, "advance", count)
    download([mirror.url("good")], tmp_path / "set.gz", md5=MD5)
    assert sum(seen) == len(CONTENT)
