"""Every reader over a few hundred damaged files; `make fuzz` runs many more."""

import json
import struct
import time
import zlib
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bcn.errors import BcnError
from fuzz.damage import damage_bytes, damage_json
from fuzz.harness import CHANGED, FAILURES, RAISED, REFUSED, SILENT, SLOW, UNCHANGED, Reader, fuzz
from fuzz.process import fuzz_apart
from fuzz.readers import READERS

CASES = 250


@pytest.mark.parametrize("name", READERS)
def test_damage_is_refused_or_read_and_nothing_else(name: str) -> None:
    report = fuzz(READERS[name], range(CASES))
    assert not report.failures, f"{len(report.failures)} of {CASES}, the first {report.failures[0]}"
    assert report.outcomes.total() == CASES
    assert report.outcomes[UNCHANGED] < CASES, "no damage was done"


def test_damage_is_the_same_for_the_same_case() -> None:
    content = json.dumps({"a": [1, 2.5, {"b": "text"}], "c": None}).encode()
    for damage in (damage_bytes, damage_json):
        first, second = ([damage(content, Random(case)) for case in range(300)] for _ in range(2))
        assert first == second
        assert len(set(first)) > 150


def _reader(read: Any, **options: Any) -> Reader:
    return Reader("toy", lambda folder: (folder / "a.json").write_text('{"a": [1, 2, 3]}'), read, **options)


def test_the_harness_finds_what_readers_do_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers that are wrong in each of the ways, and one that is not."""

    def load(folder: Path) -> Any:
        return json.loads((folder / "a.json").read_bytes().decode("latin-1"))

    def refuse(folder: Path) -> Any:
        try:
            return load(folder)
        except (ValueError, OSError, RecursionError) as error:
            raise BcnError("it is no JSON") from error

    def hang(folder: Path) -> Any:
        while refuse(folder) != {"a": [1, 2, 3]}:
            pass

    def wait(folder: Path) -> Any:
        time.sleep(0 if load(folder) == {"a": [1, 2, 3]} else 600)

    cases = range(60)
    assert RAISED in fuzz(_reader(load), cases).outcomes
    assert set(fuzz(_reader(refuse), cases).outcomes) == {REFUSED, UNCHANGED, CHANGED}
    assert SILENT in fuzz(_reader(refuse, checked=True), cases).outcomes
    monkeypatch.setattr("fuzz.harness.SECONDS", 0.05)
    slow = fuzz(_reader(hang), range(12))
    assert SLOW in slow.outcomes
    assert slow.failures
    monkeypatch.setattr("fuzz.harness.WAITING_SECONDS", 0.05)
    assert SLOW in fuzz(_reader(wait), range(3)).outcomes
    assert set(FAILURES).isdisjoint((REFUSED, UNCHANGED, CHANGED))


def test_a_checksum_that_covers_too_little_is_found() -> None:
    """A reader whose checksum leaves out the last byte."""

    def write(folder: Path) -> None:
        content = bytes(range(16))
        (folder / "a.bin").write_bytes(struct.pack("<I", zlib.crc32(content[:-1])) + content)

    def read(folder: Path) -> bytes:
        path = folder / "a.bin"
        content = path.read_bytes() if path.exists() else b""
        if len(content) != 20 or struct.unpack("<I", content[:4])[0] != zlib.crc32(content[4:-1]):
            raise BcnError("it is damaged")
        return content[4:]

    assert SILENT in fuzz(Reader("toy", write, read, checked=True), range(200)).outcomes


def test_cases_run_in_a_process_whose_end_is_a_failure() -> None:
    report = fuzz_apart("GloVe", range(30))
    assert report.outcomes == fuzz(READERS["GloVe"], range(30)).outcomes
    assert not report.failures
    ended = fuzz_apart("no such reader", range(30))
    assert ended.failures == ["cases 0 to 29: the process was ended with 1"]
