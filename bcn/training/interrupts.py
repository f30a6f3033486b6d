"""Ctrl-C, SIGTERM and SIGHUP (a terminal that is closed): finish the step, save, exit. A second one exits at once."""

import os
import signal
import threading
from types import FrameType
from typing import Self

STOPPING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Windows has no SIGHUP"""


class Interrupted(Exception):
    """The run was asked to stop and its state is on disk; the command line exits with 128 + signal."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.signal = number


class Stop:
    """Within this context, signals are recorded; `check` raises where it is safe to stop."""

    def __init__(self) -> None:
        self.requested: int | None = None
        self._handlers: dict[int, object] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in STOPPING:
                # A SIGHUP that is ignored from the start is nohup's wish.
                if signal.Signals(number).name != "SIGHUP" or signal.getsignal(number) is not signal.SIG_IGN:
                    self._handlers[number] = signal.signal(number, self._record)
        return self

    def __exit__(self, *error: object) -> None:
        self._restore()

    def check(self) -> None:
        if self.requested is not None:
            raise Interrupted(self.requested)

    def _record(self, number: int, frame: FrameType | None) -> None:
        self.requested = number
        self._restore()
        _leave_closed_terminal()

    def _restore(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._handlers = {}


def _leave_closed_terminal() -> None:
    """Discard what is printed where a terminal is gone: it would be an error, and the state not saved."""
    for stream in (1, 2):
        try:
            os.write(stream, b"")
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream)
            os.close(nowhere)
