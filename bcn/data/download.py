"""Verified downloads: into a `.part` file, which an interrupted download resumes, then checked and renamed."""

import os
import sys
from collections.abc import Iterable, Sequence
from http.client import HTTPException, HTTPMessage, HTTPResponse
from pathlib import Path
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

from bcn.errors import BcnError
from bcn.io import checksum, locked, sync_directory

TIMEOUT = 30
CHUNK = 1 << 18


def download(urls: Sequence[str], path: Path, *, md5: str | None, remedy: str | None = None) -> Path:
    """Download `path` from the first of the mirrors `urls` that gives a file with the checksum `md5`.

    Nothing happens where `path` exists. An interrupted download is resumed, by the next mirror or call; a file with
    another checksum is deleted.

    Args:
        urls: mirrors, in the order in which they are tried.
        md5: None for a file whose publisher gives no checksum.
        remedy: what the error says to do by hand.
    """
    with locked(path.with_name(path.name + ".lock")):
        if path.exists():
            return path
        part = path.with_name(path.name + ".part")
        reasons = []
        for url in urls:
            try:
                if _complete(url, part, md5):
                    part.replace(path)
                    sync_directory(path.parent)
                    return path
                reasons.append(f"{url}: gives a file with another checksum than the published md5 {md5}")
            except (OSError, HTTPException) as error:
                reasons.append(f"{url}: {_reason(error)}")
        by_hand = remedy or f"put it at {path}"
        raise BcnError(f"cannot download {path.name} ({'; '.join(reasons)}): try again later, or {by_hand}")


def _complete(url: str, part: Path, md5: str | None) -> bool:
    """Whether `part` became the file with the checksum `md5`; if not, it is deleted."""
    resumed = part.exists()
    _resume(url, part)
    if md5 is None or checksum(part, "md5") == md5:
        return True
    part.unlink()
    return resumed and _complete(url, part, md5)  # what was there may have been the beginning of another file


def _resume(url: str, part: Path) -> None:
    """Append to `part` what is missing of it."""
    size = part.stat().st_size if part.exists() else 0
    try:
        response = _open(url, size)
    except HTTPError as error:
        if error.code != 416:
            raise
        part.unlink()  # more than the whole file, or exactly it: only the checksum of a fresh copy can tell
        size, response = 0, _open(url, 0)
    with response:
        if response.status != 206:  # the mirror ignores ranges: start again
            size = 0
        rest = response.headers.get("Content-Length")
        total = size + int(rest) if rest else None
        with open(part, "ab" if size else "wb") as file:
            for chunk in _progress(response, part.stem, size, total):
                file.write(chunk)
            _flush(file)
    if total is not None and part.stat().st_size < total:
        raise ConnectionError(f"the connection broke after {part.stat().st_size:,} of {total:,} bytes")


class _StayEncrypted(HTTPRedirectHandler):
    """Follows no redirect from https to http: without a published checksum, nothing else tells who sent a file."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        if req.type == "https" and not newurl.lower().startswith("https:"):
            raise URLError(f"it redirects to {newurl}, which is not encrypted")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _open(url: str, size: int) -> HTTPResponse:
    request = Request(url, headers={"User-Agent": "bcn", **({"Range": f"bytes={size}-"} if size else {})})
    response: HTTPResponse = build_opener(_StayEncrypted).open(request, timeout=TIMEOUT)
    return response


def _progress(response: HTTPResponse, name: str, size: int, total: int | None) -> Iterable[bytes]:
    columns = ("{task.description}", BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task(name, completed=size, total=total)
        while chunk := response.read(CHUNK):
            progress.advance(task, len(chunk))
            yield chunk


def _flush(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _reason(error: Exception) -> str:
    reason = error.reason if isinstance(error, URLError) and not isinstance(error, HTTPError) else error
    return str(reason) or type(reason).__name__
