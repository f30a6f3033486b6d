"""Batches that are read one step ahead, in a thread: while a GPU computes a step, the host has nothing else to do.

What is read depends on its number alone, so neither the order nor the values depend on the thread. On the CPU the step
itself needs the cores, and nothing is read ahead, unless processes of the data set make its batches.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, Self, TypeVar

Item = TypeVar("Item")


class Prefetch(Generic[Item]):
    """`prefetch(n)` is `read(n)`; while the caller uses it, a thread reads what comes `step` after it.

    >>> with Prefetch(lambda number: 10 * number, stop=3, ahead=True) as prefetch:
    ...     [prefetch(0), prefetch(1), prefetch(2)]
    [0, 10, 20]

    Args:
        stop: the number after the last.
        ahead: whether anything is read ahead.
    """

    def __init__(self, read: Callable[[int], Item], *, stop: int, step: int = 1, ahead: bool) -> None:
        self.read, self.stop, self.step = read, stop, step
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="bcn-prefetch") if ahead else None
        self._pending: dict[int, Future[Item]] = {}

    def __call__(self, number: int) -> Item:
        if self._thread is None:
            return self.read(number)
        pending = self._pending.pop(number, None)
        item = self.read(number) if pending is None else pending.result()
        following = number + self.step
        if following < self.stop:
            self._pending[following] = self._thread.submit(self.read, following)
        return item

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._thread is not None:
            self._thread.shutdown(cancel_futures=True)
