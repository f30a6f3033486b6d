"""Run a reader over damaged copies of its files, and sort out what it does with them.

A reader may refuse a file in one sentence, or read it: what it was, or, where nothing tells, something else. It fails
where it raises anything else, takes too long or too much memory, or accepts damage that a checksum covers.
"""

import os
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from bcn.errors import BcnError
from fuzz.damage import damage_bytes, damage_json

SECONDS = 10.0
"""of CPU that a reader may take for a file, which takes it milliseconds when it is whole"""
WAITING_SECONDS = 60.0
"""by the clock, where it waits for what never comes; on a busy machine a reader may not get the CPU for a while"""
MEGABYTES = 500
"""by which the process may grow"""
MEMORY = Path("/dev/shm")
"""files that are written again and again need no disk"""

REFUSED, UNCHANGED, CHANGED = "refused", "read, the same", "read, another"
SILENT, RAISED, SLOW, LARGE = "damage accepted", "other exception", "too slow", "too large"
OUTCOMES = (REFUSED, UNCHANGED, CHANGED, SILENT, RAISED, SLOW, LARGE)
FAILURES = OUTCOMES[3:]


def same(read: Any, written: Any) -> bool:
    return bool(read == written)


@dataclass(frozen=True)
class Reader:
    name: str
    write: Callable[[Path], object]
    """writes whole files into an empty directory"""
    read: Callable[[Path], Any]
    """reads them; what it gives is compared"""
    files: str = "*"
    """a glob of those that are damaged"""
    checked: bool = False
    """a checksum covers them, so that what is read is what was written"""
    accepts: Callable[[Any, Any], bool] = same
    """whether what is read of checked files may be read, given what was written"""
    damage: Callable[[Path, Random], None] | None = None
    """does the damage where bytes and JSON values are not what is damaged"""
    refusals: tuple[type[Exception], ...] = (BcnError,)


@dataclass
class Report:
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def add(self, outcome: str, case: int, what: str) -> None:
        self.outcomes[outcome] += 1
        if outcome in FAILURES:
            self.failures.append(f"case {case}: {outcome}: {what}")


class _TooSlow(BaseException):
    """No exception that a reader would catch."""


def fuzz(reader: Reader, cases: range) -> Report:
    """Damage the reader's files anew for each case; a case is the same whenever it is run."""
    report = Report()
    with (
        tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as name,
        patch.dict(os.environ, {"BCN_CACHE": f"{name}/cache"}),
    ):
        folder = Path(name) / "files"
        folder.mkdir()
        reader.write(folder)
        whole = {path: path.read_bytes() for path in sorted(folder.rglob(reader.files)) if path.is_file()}
        written, memory = reader.read(folder), _peak_megabytes()
        for case in cases:
            _damage(reader, folder, whole, Random(f"{reader.name} {case}"))
            outcome, what = _run(reader, folder, written)
            if _peak_megabytes() > memory + MEGABYTES:
                outcome, what, memory = LARGE, f"{_peak_megabytes() - memory} MB", _peak_megabytes()
            report.add(outcome, case, what)
            for path, content in whole.items():
                path.write_bytes(content)
    return report


def _damage(reader: Reader, folder: Path, whole: dict[Path, bytes], random: Random) -> None:
    if reader.damage is not None:
        reader.damage(folder, random)
        return
    path = random.choice(list(whole))
    if random.random() < 0.01:
        path.unlink()
        return
    damage = damage_json if path.suffix in (".json", ".jsonl") and random.random() < 0.6 else damage_bytes
    path.write_bytes(damage(whole[path], random))


def _run(reader: Reader, folder: Path, written: Any) -> tuple[str, str]:
    try:
        with _time_limit(), redirect_stderr(StringIO()):
            read = reader.read(folder)
    except reader.refusals as error:
        sentence = str(error)
        if "\n" in sentence.strip() or "Traceback" in sentence or len(sentence) > 6000:
            return RAISED, f"its refusal is not a sentence: {sentence[:300]!r}"
        return REFUSED, ""
    except _TooSlow:
        return SLOW, "".join(traceback.format_exc().splitlines(keepends=True)[-6:])
    except MemoryError as error:
        return LARGE, repr(error)
    except Exception:
        return RAISED, traceback.format_exc()
    if same(read, written):
        return UNCHANGED, ""
    if reader.checked and not reader.accepts(read, written):
        return SILENT, ""
    return CHANGED, ""


@contextmanager
def _time_limit() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise _TooSlow

    if sys.platform == "win32":
        yield
        return
    limits = (
        (signal.SIGPROF, signal.ITIMER_PROF, SECONDS),
        (signal.SIGALRM, signal.ITIMER_REAL, WAITING_SECONDS),
    )
    before = [signal.signal(number, stop) for number, _, _ in limits]
    for _, timer, seconds in limits:
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for (number, timer, _), handler in zip(limits, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


def _peak_megabytes() -> int:
    if sys.platform == "win32":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
