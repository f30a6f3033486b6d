"""Ctrl-C and SIGTERM: finish the step, save, exit. A second one exits at once."""

import signal
import threading
from types import FrameType
from typing import Self


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
            self._handlers = {number: signal.signal(number, self._record) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *error: object) -> None:
        self._restore()

    def check(self) -> None:
        if self.requested is not None:
            raise Interrupted(self.requested)

    def _record(self, number: int, frame: FrameType | None) -> None:
        self.requested = number
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._handlers = {}
