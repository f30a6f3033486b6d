"""Damage to files: what disks, transfers and strangers do to bytes, and to the values of JSON."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 2**63 - 1, 2**64 - 1)
"""that overflow something"""
TEXTS = (
    "",
    "\0",
    "../../../etc/passwd",
    "/etc/passwd",
    "\x1b[2J",
    "\ud800",
    "a" * 5000,
    "NaN",
    "[/red]",
    "%s%n",
    "é" * 99,
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, [], {}, [[]], [None], {"": None}, -1, 2**31, 2**63, 2**64, 10**400, -(2**63) - 1),
    *(0.5, -0.0, 1e308, float("inf"), float("nan"), *TEXTS),
)
"""that a reader may not expect"""


def damage_bytes(content: bytes, random: Random) -> bytes:
    """One change in most cases, seldom several."""
    for _ in range(random.choice((1, 1, 1, 1, 2, 3, 8))):
        content = random.choice(_CHANGES)(content, random)
    return content


def damage_json(content: bytes, random: Random) -> bytes:
    """The same for the values of JSON, or of a line of JSON among lines; bytes are damaged where there is none."""
    lines = content.splitlines(keepends=True)
    line = random.randrange(len(lines)) if lines else 0
    for text, put in ((content, lambda new: new), (lines[line] if lines else b"", lambda new: _with(lines, line, new))):
        try:
            value = json.loads(text)
        except ValueError:
            continue
        for _ in range(random.choice((1, 1, 1, 2, 5))):
            value = damage_value(value, random)
        try:
            return bytes(put(json.dumps(value).encode("utf-8", "surrogatepass") + text[len(text.rstrip()) :]))
        except (ValueError, RecursionError):  # a number with too many digits
            break
    return damage_bytes(content, random)


def damage_value(value: Any, random: Random) -> Any:
    """A value with a part of it replaced, removed, doubled or moved."""
    if not value or not isinstance(value, dict | list) or random.random() < 0.15:
        return random.choice((*VALUES, [value], {"value": value}, _nest(random), _flip(value, random)))
    copied: Any = value.copy()
    key = random.choice(list(value)) if isinstance(value, dict) else random.randrange(len(value))
    action = random.random()
    if action < 0.6:
        copied[key] = damage_value(value[key], random)
    elif action < 0.7:
        del copied[key]
    elif action < 0.8:
        copied[key] = random.choice(VALUES)
    elif action < 0.9 and isinstance(value, list):
        copied.insert(random.randrange(len(value) + 1), value[key])
    elif isinstance(value, dict):
        copied[random.choice([*value, *TEXTS])] = copied.pop(key)
    return copied


def _with(lines: list[bytes], line: int, new: bytes) -> bytes:
    return b"".join([*lines[:line], new, *lines[line + 1 :]])


def _nest(random: Random) -> Any:
    nested: Any = 0
    for _ in range(random.choice((3, 50, 400))):
        nested = [nested] if random.random() < 0.5 else {"a": nested}
    return nested


def _flip(value: Any, random: Random) -> Any:
    """A number or a text that is nearly the same."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str):
        place = random.randrange(len(value) + 1)
        return value[:place] + random.choice(("x", "", "\n", "/", "é")) + value[place + 1 :]
    return random.choice((-value, value + 1, value * 2 ** random.randrange(70), value // 3))


def _places(content: bytes, random: Random) -> tuple[int, int]:
    start = random.randrange(len(content) + 1)
    return start, min(len(content), start + random.choice((1, 2, 4, 8, 64, 1000)))


def _flip_bit(content: bytes, random: Random) -> bytes:
    if not content:
        return b"\x01"
    place = random.randrange(len(content))
    return content[:place] + bytes([content[place] ^ 1 << random.randrange(8)]) + content[place + 1 :]


def _cut(content: bytes, random: Random) -> bytes:
    return content[: random.choice((0, random.randrange(len(content) + 1), len(content) - 1, len(content) // 2))]


def _delete(content: bytes, random: Random) -> bytes:
    start, stop = _places(content, random)
    return content[:start] + content[stop:]


def _overwrite(content: bytes, random: Random) -> bytes:
    start, stop = _places(content, random)
    byte = random.choice((0, 0xFF, None))
    new = random.randbytes(stop - start) if byte is None else bytes([byte]) * (stop - start)
    return content[:start] + new + content[stop:]


def _repeat(content: bytes, random: Random) -> bytes:
    start, stop = _places(content, random)
    return content[:start] + content[start:stop] * random.choice((2, 3, 50)) + content[stop:]


def _move(content: bytes, random: Random) -> bytes:
    start, stop = _places(content, random)
    rest = content[:start] + content[stop:]
    place = random.randrange(len(rest) + 1)
    return rest[:place] + content[start:stop] + rest[place:]


def _put_number(content: bytes, random: Random) -> bytes:
    """A whole number in binary, as lengths and counts are written, most often in the header."""
    size = random.choice((1, 2, 4, 8))
    number = random.choice(NUMBERS) % (1 << 8 * size)
    place = random.randrange(max(1, min(len(content), random.choice((16, 200, len(content))))))
    return content[:place] + number.to_bytes(size, random.choice(("little", "big"))) + content[place + size :]


def _append(content: bytes, random: Random) -> bytes:
    return content + random.choice((b"\0", b"\n", b"}", content[:100], random.randbytes(100)))


_CHANGES: tuple[Callable[[bytes, Random], bytes], ...] = (
    *(_flip_bit, _flip_bit, _flip_bit, _overwrite, _overwrite, _put_number, _put_number),
    *(_cut, _delete, _repeat, _move, _append),
)
