"""Files in MATLAB's level 5 format, written after the format's description."""

import struct
import zlib

import numpy as np

MI = {"i1": 1, "u1": 2, "i2": 3, "u2": 4, "i4": 5, "u4": 6, "f4": 7, "f8": 9}
MX = {"f8": 6, "f4": 7, "i1": 8, "u1": 9, "i2": 10, "u2": 11, "i4": 12, "u4": 13}


def element(kind: int, body: bytes, order: str) -> bytes:
    if 0 < len(body) <= 4:  # the small form
        return struct.pack(order + "I", len(body) << 16 | kind) + body.ljust(4, b"\0")
    return struct.pack(order + "II", kind, len(body)) + body + bytes(-len(body) % 8)


def head(kind: int, shape: tuple[int, ...], name: str, order: str) -> bytes:
    dimensions = struct.pack(f"{order}{len(shape)}i", *shape)
    flags = element(6, struct.pack(order + "II", kind, 0), order)
    return flags + element(5, dimensions, order) + element(1, name.encode(), order)


def numeric(array: np.ndarray, name: str, order: str) -> bytes:
    code = array.dtype.str[1:]
    body = element(MI[code], array.astype(order + code).tobytes(order="F"), order)
    return element(14, head(MX[code], array.shape, name, order) + body, order)


def text(value: str, name: str, order: str) -> bytes:
    return element(14, head(4, (1, len(value)), name, order) + element(16, value.encode(), order), order)


def cell(values: list[bytes], name: str, order: str) -> bytes:
    return element(14, head(1, (1, len(values)), name, order) + b"".join(values), order)


def structure(fields: dict[str, bytes], name: str, order: str) -> bytes:
    width = max(map(len, fields)) + 1
    names = b"".join(field.encode().ljust(width, b"\0") for field in fields)
    body = element(5, struct.pack(order + "i", width), order) + element(1, names, order) + b"".join(fields.values())
    return element(14, head(2, (1, 1), name, order) + body, order)


def document(variables: bytes, order: str, *, compress: bool) -> bytes:
    header = b"MATLAB 5.0 MAT-file, written by a test".ljust(116) + bytes(8)
    header += struct.pack(order + "H", 0x0100) + (b"IM" if order == "<" else b"MI")
    if compress:
        packed = zlib.compress(variables)
        return header + struct.pack(order + "II", 15, len(packed)) + packed
    return header + variables


def batch(images: np.ndarray, labels: np.ndarray, *, order: str = "<", compress: bool = True) -> bytes:
    """A file of affNIST: each image is a column, row after row of its pixels; the fields in the published order."""
    count = len(labels)
    fields = {
        "affine_transformation_matrix": cell([numeric(np.eye(3), "", order) for _ in range(count)], "", order),
        "affine_transformation_matrix_inverse": cell([numeric(np.eye(3), "", order) for _ in range(count)], "", order),
        "image": numeric(images.reshape(count, 1600).T, "", order),
        "id": numeric(np.arange(1.0, count + 1)[None], "", order),
        "label_one_of_n": numeric(np.eye(10, dtype=np.uint8)[labels].T, "", order),
        "label_int": numeric(labels.astype(np.uint8)[None], "", order),
        "human_readable_transformation": cell([text("rotated", "", order) for _ in range(count)], "", order),
        "original_id": numeric(np.arange(1.0, count + 1)[None], "", order),
    }
    return document(structure(fields, "affNISTdata", order), order, compress=compress)
