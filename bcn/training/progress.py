"""Progress of a run: a bar on a terminal, a plain line every 30 seconds elsewhere."""

import errno
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from bcn.errors import printable

PLAIN_SECONDS = 30.0


def say(line: str) -> None:
    """Print a line to standard error; standard output is for results."""
    with _unless_closed():
        print(printable(line), file=sys.stderr, flush=True)


@contextmanager
def _unless_closed() -> Iterator[None]:
    """A terminal that is gone is no reason to end a run here: a signal follows, on which it saves."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EIO:
            raise


def duration(seconds: float) -> str:
    """
    >>> duration(42), duration(750), duration(9000)
    ('42 s', '12.5 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


class Progress:
    """The progress of a run. `step` is called after every step; the loss is read only when something is shown.

    Args:
        total: steps of the run.
        done: steps that were done before.
        quiet: whether nothing is shown.
    """

    def __init__(self, title: str, total: int, done: int, *, quiet: bool = False) -> None:
        self.title, self.total, self.done, self.quiet = title, total, done, quiet
        self.shown = time.monotonic()
        self.begin("", total)
        self.bar = None if quiet or not sys.stderr.isatty() else _bar(title, total, done)

    def begin(self, phase: str, until: int) -> None:
        """Begin a phase, whose steps take equal times, so that the time left is estimated from them alone."""
        self.phase, self.until = phase, until
        self.start, self.first, self.samples = time.monotonic(), self.done, 0

    def step(self, epoch: int, samples: int, loss: Callable[[], float]) -> None:
        self.done += 1
        self.samples += samples
        now = time.monotonic()
        if self.quiet or now - self.shown < (0.5 if self.bar else PLAIN_SECONDS):
            return
        self.shown = now
        speed = self.samples / (now - self.start)
        left = (now - self.start) / (self.done - self.first) * (self.until - self.done)
        text = f"epoch {epoch + 1}, loss {loss():.4f}, {speed:,.0f} answers/s, {duration(left)} left"
        if self.until < self.total:
            text += f" of {self.phase}"
        if self.bar:
            with _unless_closed():
                self.bar.update(self.bar.task_ids[0], completed=self.done, text=text)
        else:
            say(f"{self.title}: step {self.done}/{self.total}, {text}")

    def say(self, line: str) -> None:
        if self.bar:
            with _unless_closed():
                self.bar.console.print(printable(line), highlight=False, markup=False)
        elif not self.quiet:
            say(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self.bar:
            with _unless_closed():
                self.bar.update(self.bar.task_ids[0], completed=self.done)
                self.bar.stop()


def _bar(title: str, total: int, done: int) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as RichProgress

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[text]}"))
    bar = RichProgress(*columns, console=Console(stderr=True))
    bar.add_task(title, total=total, completed=done, text="")
    bar.start()
    return bar
