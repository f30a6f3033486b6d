"""The cases of a reader in another process, which a crash may end."""

import faulthandler
from multiprocessing import get_context
from multiprocessing.connection import Connection

import torch

from fuzz.harness import Report, fuzz
from fuzz.readers import READERS

CHUNK = 100
"""cases after which a process reports"""


def fuzz_apart(name: str, cases: range) -> Report:
    """The report of all cases; where the process is ended by one, the next goes on behind the chunk it is in."""
    total, context, start = Report(), get_context("spawn"), cases.start
    while start < cases.stop:
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(name, range(start, cases.stop), theirs), daemon=True)
        process.start()
        theirs.close()
        try:
            while start < cases.stop:
                report: Report = ours.recv()
                total.outcomes += report.outcomes
                total.failures += report.failures
                start += CHUNK
            process.join()
        except EOFError:
            process.join()
            last = min(start + CHUNK, cases.stop) - 1
            total.failures.append(f"cases {start} to {last}: the process was ended with {process.exitcode}")
            start += CHUNK
    return total


def _work(name: str, cases: range, pipe: Connection) -> None:
    faulthandler.enable()
    torch.set_num_threads(1)
    for start in range(cases.start, cases.stop, CHUNK):
        pipe.send(fuzz(READERS[name], range(start, min(start + CHUNK, cases.stop))))
