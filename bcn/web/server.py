"""uvicorn as `bcn serve` runs it: where it listens, and how long a silent client may hold a connection."""

import asyncio
import json
import socket

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from bcn.errors import BcnError
from bcn.web.guard import SECURITY_HEADERS

IDLE_SECONDS = 5
"""between two requests on a connection"""
HEAD_SECONDS = 10
"""from the opening of a connection, or from the response before, until a request's head is complete"""
SHUTDOWN_SECONDS = 2


class Protocol(H11Protocol):
    """uvicorn's HTTP, which also closes connections that never finish a request's head."""

    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._cancel()

    def _await_head(self) -> None:
        self._cancel()
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self._close_without_head)

    def _cancel(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()

    def _close_without_head(self) -> None:
        if self.conn.their_state is h11.IDLE:
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP is answered in the form of every other error."""
        body = json.dumps({"error": f"{msg} Send HTTP/1.1."}).encode()
        headers = {**SECURITY_HEADERS, "Content-Type": "application/json", "Connection": "close"}
        response = h11.Response(status_code=400, headers=list(headers.items()), reason=b"Bad Request")
        for event in (response, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


def make_server(app: ASGIApp) -> uvicorn.Server:
    """The server, not yet listening."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=Protocol,
            ws="none",
            lifespan="off",
            log_level="warning",
            server_header=False,
            timeout_keep_alive=IDLE_SECONDS,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
    )


def bind(host: str, port: int) -> socket.socket:
    """A socket on this address, IPv4 or IPv6, which does not listen yet."""
    listener = None
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except (OSError, UnicodeError) as error:
        if listener is not None:
            listener.close()
        reason = getattr(error, "strerror", None) or error
        raise BcnError(f"cannot listen on {host}:{port}: {reason}; choose another --host or --port") from error
    return listener


def to_url(host: str, port: int) -> str:
    """The address of the page.

    >>> to_url("::1", 8000)
    'http://[::1]:8000'
    """
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
