"""What clients can make the server hold: requests at once, bytes of bodies, and the seconds of an upload."""

import asyncio

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bcn.web.errors import Refusal, too_busy

MAX_REQUESTS = 512
"""at once, where no other number is given"""
MAX_BYTES = 8 << 20
"""of a request's body"""
MAX_JSON_BYTES = 1 << 20
"""of a body of JSON, which the event loop parses: a hundred questions of 1,000 letters are a tenth of it"""
MAX_HELD_BYTES = 48 << 20
"""of the bodies of all requests at once"""
BODY_SECONDS = 30
"""in which a body has to arrive"""
CLOSE = {"Connection": "close"}
"""the rest of the body is not read"""


class Limits:
    """Middleware that refuses what is beyond the bounds: 413 and 408 for one body, 503 for what all clients ask."""

    def __init__(self, app: ASGIApp, *, max_requests: int = MAX_REQUESTS) -> None:
        self.app, self.max_requests = app, max_requests
        self.requests = self.held_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        length, kind = headers.get("content-length", "0"), headers.get("content-type", "")
        most = MAX_JSON_BYTES if "json" in kind.lower() else MAX_BYTES
        if length.isdecimal() and int(length) > most:
            await _too_large(most).response()(scope, receive, send)
            return
        if self.requests >= self.max_requests:
            await too_busy(f"{self.max_requests} requests are being answered", CLOSE).response()(scope, receive, send)
            return
        received = 0
        deadline: float | None = asyncio.get_running_loop().time() + BODY_SECONDS

        async def receive_bounded() -> Message:
            nonlocal received, deadline
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError as error:
                raise Refusal(408, f"the body took more than {BODY_SECONDS} s: send it faster", CLOSE) from error
            if not message.get("more_body", False):
                deadline = None  # what comes now is at most that the client has gone
            size = len(message.get("body", b""))
            received += size
            self.held_bytes += size
            if received > most:
                raise _too_large(most)
            if self.held_bytes > MAX_HELD_BYTES:
                self.held_bytes -= received  # now, so that this one alone is refused
                received = 0
                raise too_busy(f"uploads hold {MAX_HELD_BYTES} bytes", CLOSE)
            return message

        self.requests += 1
        try:
            await self.app(scope, receive_bounded, send)
        finally:
            self.requests -= 1
            self.held_bytes -= received


def _too_large(most: int) -> Refusal:
    return Refusal(413, f"the body has more than {most} bytes: send a smaller one", CLOSE)
