"""A server in this process, on a port of its own."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import bcn
from bcn.web.app import make_app
from bcn.web.limits import MAX_REQUESTS
from bcn.web.server import make_server


@contextmanager
def serving(*weights: Path, max_requests: int = MAX_REQUESTS) -> Iterator[tuple[str, Callable[[], None]]]:
    """The address of a server with these weights, and what stops it."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = make_server(make_app([bcn.load(path) for path in weights], max_requests=max_requests))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()

    def stop() -> None:
        server.should_exit = server.force_exit = True
        thread.join()

    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", stop
    finally:
        stop()
        listener.close()
