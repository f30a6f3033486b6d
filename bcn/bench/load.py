"""`bcn bench serve`: many clients at once, and slow uploads, against `bcn serve` in a process of its own.

Each client asks again as soon as it is answered, on one connection. Clients and server share the cores.
"""

import asyncio
import io
import statistics
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from PIL import Image

from bcn.bench.served import Served, start_server
from bcn.data.sort_of_clevr import make_sort_of_clevr

UPLOAD_BYTES = 8 << 20
"""of a slow upload: the most that the server accepts"""
PAUSE = 0.1
"""seconds between two requests for a file of the page, and between two looks at the server's memory"""
FILE = "/style.css"


class Answers(NamedTuple):
    """What one kind of requests met."""

    milliseconds: list[float]
    errors: list[str]

    def summary(self) -> dict[str, float]:
        return {
            "median": statistics.median(self.milliseconds),
            "p99": statistics.quantiles(self.milliseconds, n=100)[98],
        }


def bench_serve(
    weights: str, *, clients: int, seconds: float, uploads: int, say: Callable[[str], None]
) -> dict[str, Any]:
    """Latencies, errors and memory of a server under load.

    Args:
        clients: that ask at once.
        seconds: for which they do.
        uploads: of UPLOAD_BYTES that never end, at once.
    """
    say("starting the server")
    with start_server(weights) as served:
        say(f"{clients} clients for {seconds:.0f} s")
        measured = asyncio.run(_ask_at_once(served, clients, seconds))
        say(f"{uploads} slow uploads")
        held = asyncio.run(_hold_uploads(served, uploads))
    return {"weights": weights, "clients": clients, "seconds": seconds, **measured, "slow uploads": held}


async def _ask_at_once(served: Served, clients: int, seconds: float) -> dict[str, Any]:
    asked, files, memory = Answers([], []), Answers([], []), list[float]()
    end = time.perf_counter() + seconds
    question = _request("POST", "/api/ask?question=is+red+left", _scene())
    await asyncio.gather(
        *(_ask(served, question, asked, end) for _ in range(clients)),
        _ask(served, _request("GET", FILE), files, end, pause=PAUSE),
        _every_pause(lambda: memory.append(_megabytes(served.pid)), end),
    )
    summary = asked.summary()
    return {
        "requests": len(asked.milliseconds),
        "errors": len(asked.errors) + len(files.errors),
        "requests per second": len(asked.milliseconds) / seconds,
        "milliseconds of a question": summary,
        "p99 / median": summary["p99"] / summary["median"],
        "milliseconds of a file": files.summary(),
        "megabytes": {"after a quarter": memory[len(memory) // 4], "at the end": memory[-1], "at most": max(memory)},
    }


async def _ask(served: Served, request: bytes, answers: Answers, end: float, pause: float = 0.0) -> None:
    """Send a request again and again on one connection; after an error, on a new one."""
    while time.perf_counter() < end:
        with suppress(OSError):
            reader, writer = await _connect(served)
            try:
                while (start := time.perf_counter()) < end:
                    status = await _exchange(reader, writer, request)
                    if status == 200:
                        answers.milliseconds.append(1000 * (time.perf_counter() - start))
                    else:
                        answers.errors.append(f"status {status}")
                    await asyncio.sleep(pause)
            except (OSError, EOFError, ValueError) as error:
                answers.errors.append(repr(error))
            finally:
                writer.close()


async def _exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> int:
    """The status of the response, whose body is read too."""
    writer.write(request)
    await writer.drain()
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    await reader.readexactly(int(head.split("content-length:")[1].split()[0]))
    return int(head.split()[1])


async def _hold_uploads(served: Served, uploads: int) -> dict[str, Any]:
    """Send all but the last byte of each, then wait; count what the server refuses and what it costs."""
    before, peak = _megabytes(served.pid), 0.0
    held = refused = 0

    async def upload() -> None:
        nonlocal held, refused
        reader, writer = await _connect(served)
        try:
            writer.write(_request("POST", "/api/find", bytes(UPLOAD_BYTES))[:-1])
            await writer.drain()
            await asyncio.wait_for(reader.read(1), 5)
            refused += 1
        except TimeoutError:
            held += 1
        except OSError:  # refused while it was sent
            refused += 1
        finally:
            writer.close()

    def look() -> None:
        nonlocal peak
        peak = max(peak, _megabytes(served.pid))

    watching = asyncio.create_task(_every_pause(look, float("inf")))
    await asyncio.gather(*(upload() for _ in range(uploads)))
    watching.cancel()
    return {"uploads": uploads, "held": held, "refused": refused, "megabytes": peak - before}


async def _every_pause(look: Callable[[], None], end: float) -> None:
    while time.perf_counter() < end:
        look()
        await asyncio.sleep(PAUSE)


def _connect(served: Served) -> Coroutine[Any, Any, tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    address = urlsplit(served.address)
    return asyncio.open_connection(address.hostname, address.port)


def _request(method: str, path: str, body: bytes = b"") -> bytes:
    lines: Sequence[str] = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


def _scene() -> bytes:
    """A Sort-of-CLEVR scene as a PNG file."""
    image = make_sort_of_clevr("sort-of-clevr-stream", "train", images=1)[[0]].image[0]
    buffer = io.BytesIO()
    Image.fromarray(image.permute(1, 2, 0).numpy()).save(buffer, "PNG")
    return buffer.getvalue()


def _megabytes(pid: int) -> float:
    """Memory of a process, from the kernel's count in kilobytes."""
    return int(Path(f"/proc/{pid}/status").read_text(encoding="utf-8").split("VmRSS:")[1].split()[0]) / 1000
