"""`bcn serve` in a process of its own, to be measured from outside."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from bcn.errors import BcnError


class Served(NamedTuple):
    address: str
    """http://HOST:PORT"""
    pid: int


@contextmanager
def start_server(weights: str) -> Iterator[Served]:
    """A server with these weights on a free port, which is ended in the end."""
    command = [sys.executable, "-m", "bcn", "serve", "--weights", weights, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        try:
            line = server.stdout.readline()
            if not line:
                raise BcnError(server.stderr.read().strip().removeprefix("bcn: "))
            yield Served(line.split()[0], server.pid)
        finally:
            server.terminate()
