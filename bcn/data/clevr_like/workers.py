"""Worker processes, which end with the process that started them, however that ends."""

import multiprocessing
import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor


def make_workers(count: int, *, ignore_interrupts: bool = False) -> ProcessPoolExecutor:
    """A pool of processes. They are spawned, because a forked child shares locks of the libraries' threads.

    Args:
        ignore_interrupts: whether Ctrl-C is for the process that started them alone, which then ends them.
    """
    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(count, mp_context=spawn, initializer=_begin, initargs=(ignore_interrupts,))


def _begin(ignore_interrupts: bool) -> None:
    if ignore_interrupts:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
