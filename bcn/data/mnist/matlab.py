"""The part of MATLAB's level 5 file format (.mat) that holds numbers, text, cells and structures.

scipy.io.loadmat is no replacement: of 400 copies of an affNIST file with one damaged byte, two ended the process
(scipy 1.17.1). No checksum of affNIST is published, so damage shows only here, and must be an error.
"""

import math
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

MATRIX, COMPRESSED = 14, 15
NUMBERS = {
    1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8", 16: "u1", 17: "u2",
}  # fmt: skip
CELL, STRUCTURE, TEXT, FIRST_NUMERIC, LAST_NUMERIC = 1, 2, 4, 6, 15
MAX_BYTES = 1 << 30
"""that a file may unpack to, in all"""
MAX_DEPTH = 16
"""cells and structures within each other"""


def parse_matlab(content: bytes, *, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """The variables of a file by name: arrays in MATLAB's shape, cells as lists, structures as dictionaries.

    A structure of one element is that element, otherwise a list; of what is not supported the value is None. ValueError
    says what is wrong with a file that cannot be read.

    Args:
        max_bytes: that it may unpack to, in all.
    """
    if content[:8] == b"\x89HDF\r\n\x1a\n" or content[:10] == b"MATLAB 7.3":
        raise ValueError("it is in MATLAB's format 7.3, which is HDF5")
    if len(content) < 128 or content[126:128] not in (b"IM", b"MI"):
        raise ValueError("it has no header of a MATLAB file of level 5")
    order = "<" if content[126:128] == b"IM" else ">"
    try:
        elements = _unpacked(_elements(memoryview(content)[128:], order), order, max_bytes)
        return dict(_matrix(body, order) for kind, body in elements if kind == MATRIX)
    except (struct.error, zlib.error, IndexError, KeyError) as error:
        raise ValueError(f"it is damaged or ends too early ({error})") from error


def _unpacked(
    elements: Iterator[tuple[int, memoryview]], order: str, max_bytes: int
) -> Iterator[tuple[int, memoryview]]:
    """Elements, and those within compressed ones, which hold no further compressed ones."""
    left = max_bytes
    for kind, body in elements:
        if kind != COMPRESSED:
            yield kind, body
            continue
        stream = zlib.decompressobj()
        content = stream.decompress(body, left + 1)  # a bound of 0 would be none
        if len(content) > left:
            raise ValueError(f"it unpacks to more than the {max_bytes:,} bytes that are accepted")
        if not stream.eof:
            raise IndexError("a compressed element ends too early")
        left -= len(content)
        yield from _elements(memoryview(content), order)


def _elements(data: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """The type and content of one data element after the other."""
    start = 0
    while start < len(data):
        kind, size = struct.unpack_from(order + "II", data, start)
        if kind >> 16:  # a small element: type and size share the first word
            kind, size = kind & 0xFFFF, kind >> 16
            body, step = data[start + 4 : start + 4 + size], 8
        else:
            body, step = data[start + 8 : start + 8 + size], 8 + size
        if len(body) != size:
            raise IndexError(f"{size:,} bytes announced, {len(body):,} there")
        step += -step % 8 if kind != COMPRESSED else 0
        yield kind, body
        start += step


def _next(elements: Iterator[tuple[int, memoryview]]) -> tuple[int, memoryview]:
    for element in elements:
        return element
    raise IndexError("an element is missing")


def _matrix(data: memoryview, order: str, depth: int = 0) -> tuple[str, Any]:
    """The name and the value of one variable, field or cell."""
    if depth > MAX_DEPTH:
        raise ValueError(f"it has more than {MAX_DEPTH} cells or structures within each other")
    if not len(data):  # how an empty field is written
        return "", None
    elements = _elements(data, order)
    kind = struct.unpack_from(order + "I", _next(elements)[1])[0] & 0xFF
    shape = _shape(_next(elements), order)
    name = bytes(_next(elements)[1]).decode()
    count = math.prod(shape)
    if kind == CELL:
        return name, [_matrix(_next(elements)[1], order, depth + 1)[1] for _ in range(count)]
    if kind == STRUCTURE:
        width = int(_numbers(_next(elements), order)[0])
        text = bytes(_next(elements)[1])
        names = [text[at : at + width].split(b"\0")[0].decode() for at in range(0, len(text), width)]
        if not names and count > 1:
            raise ValueError(f"it has {count:,} structures without fields")
        values = [{field: _matrix(_next(elements)[1], order, depth + 1)[1] for field in names} for _ in range(count)]
        return name, values[0] if count == 1 else values
    if kind == TEXT or FIRST_NUMERIC <= kind <= LAST_NUMERIC:
        return name, _numbers(_next(elements), order).reshape(shape, order="F") if count else np.zeros(shape)
    return name, None


def _shape(element: tuple[int, memoryview], order: str) -> tuple[int, ...]:
    numbers = _numbers(element, order)
    if numbers.dtype.kind == "f" or (numbers < 0).any():
        raise ValueError(f"it has a matrix of the shape {numbers.tolist()}")
    return tuple(numbers.tolist())


def _numbers(element: tuple[int, memoryview], order: str) -> np.ndarray:
    kind, body = element
    return np.frombuffer(body, order + NUMBERS[kind])
