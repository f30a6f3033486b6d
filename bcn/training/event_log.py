"""metrics.jsonl: one line per event of a run, the only source of curves.

Every line ends with a CRC-32 of what is before it. A checkpoint holds a copy of the lines so far, from which a damaged
file is restored.
"""

import json
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bcn.errors import BcnError
from bcn.io import atomic_write
from bcn.training.progress import say

CHECKSUM = ', "crc32": "'
POSITION = ("step", "epoch")
"""numbers that every event has"""


@dataclass
class EventLog:
    path: Path
    lines: list[str] = field(default_factory=list)
    """those of this process and of the checkpoint that it went on from"""

    def write(self, event: dict[str, Any]) -> None:
        """Append a line."""
        line = _encode(event)
        with self._refuse(), open(self.path, "a", encoding="utf-8", newline="\n") as file:
            file.write(line)
        self.lines.append(line)

    def events(self) -> list[dict[str, Any]]:
        """The events in the file. A damaged line is named and left out, one that a crash cut short left out."""
        for number in self.find_damaged():
            say(f"{self.path}: line {number} is damaged and left out")
        return [event for event in _decode(self._read()) if event is not None]

    def find_damaged(self) -> list[int]:
        """The numbers of the lines that are not what was written."""
        lines = self._read()
        pairs = enumerate(zip(lines, _decode(lines), strict=True), start=1)
        return [number for number, (line, event) in pairs if event is None and line.endswith("\n")]

    def find_changed(self, lines: list[str]) -> list[int]:
        """The numbers of those of these lines that the file does not begin with."""
        there = self._read()
        return [number for number, line in enumerate(lines, start=1) if there[number - 1 : number] != [line]]

    def restore(self, lines: list[str]) -> None:
        """Let the file hold the lines of a checkpoint: what is damaged is named, what came later happens again."""
        if changed := self.find_changed(lines):
            say(f"{self.path}: damaged in line {changed[0]}; restored from the checkpoint")
        self.lines = list(lines)
        if self._read() != lines:
            with atomic_write(self.path) as temporary:
                temporary.write_text("".join(lines), encoding="utf-8", newline="\n")

    def rewind(self, step: int, epoch: int) -> None:
        """The same for the checkpoint of an earlier version, which has no copy."""
        events = [event for event in self.events() if event["step"] <= step]
        kept = [event for event in events if event["event"] != "epoch" or event["epoch"] <= epoch]
        with atomic_write(self.path) as temporary:
            temporary.write_text("".join(map(_encode, kept)), encoding="utf-8", newline="\n")
        self.lines = self._read()

    def sync(self) -> None:
        """Let the lines survive a power failure, those that were damaged meanwhile as well."""
        self.restore(self.lines)
        if self.lines:
            with self._refuse(), open(self.path, "r+b") as file:
                os.fsync(file.fileno())

    def _read(self) -> list[str]:
        with self._refuse():
            text = self.path.read_bytes().decode(errors="replace") if self.path.exists() else ""
        return re.findall(r"[^\n]*\n|[^\n]+", text)

    @contextmanager
    def _refuse(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise BcnError(
                f"cannot read or write {self.path}: {error.strerror}; mend that, and the same command goes on from the "
                "checkpoint"
            ) from error


def _encode(event: dict[str, Any]) -> str:
    text = json.dumps(event)
    return f'{text[:-1]}{CHECKSUM}{zlib.crc32(text.encode()):08x}"}}\n'


def _decode(lines: list[str]) -> list[dict[str, Any] | None]:
    """The events of lines; None for one that is damaged. Earlier versions wrote no checksums."""
    has_checksums = any(CHECKSUM in line for line in lines)
    return [_decode_checked(line) if has_checksums else _decode_plain(line) for line in lines]


def _decode_checked(line: str) -> dict[str, Any] | None:
    event = _decode_plain(line.rpartition(CHECKSUM)[0] + "}")
    return event if event is not None and _encode(event) == line else None


def _decode_plain(text: str) -> dict[str, Any] | None:
    try:
        event = json.loads(text)
    except ValueError:
        return None
    whole = isinstance(event, dict) and "event" in event and all(type(event.get(key)) is int for key in POSITION)
    return event if whole else None
