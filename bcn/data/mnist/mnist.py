"""MNIST: the four original idx files, from a directory or downloaded, always compared with the published contents."""

import gzip
import hashlib
import math
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bcn.data.arrays import ArrayDataset, split_range
from bcn.data.download import download
from bcn.errors import BcnError
from bcn.io import cache_root, data_root

MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
CLASSES = tuple("0123456789")
SPLITS = {
    "train": ("train", 0, 55_000),
    "val": ("train", 55_000, 60_000),
    "train+val": ("train", 0, 60_000),
    "test": ("test", 0, 10_000),
}


@dataclass(frozen=True)
class IdxFile:
    name: str
    shape: tuple[int, ...]
    md5: str
    """of the published .gz file"""
    sha256: str
    """of what it holds"""

    @property
    def size(self) -> int:
        """Bytes of what it holds: four for each number of the header, then one for each of the array."""
        return 4 * (1 + len(self.shape)) + math.prod(self.shape)


FILES = {
    "train": (
        IdxFile(
            "train-images-idx3-ubyte",
            (60_000, 28, 28),
            "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        ),
        IdxFile(
            "train-labels-idx1-ubyte",
            (60_000,),
            "d53e105ee54ea40749a09fcbcd1e9432",
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        ),
    ),
    "test": (
        IdxFile(
            "t10k-images-idx3-ubyte",
            (10_000, 28, 28),
            "9fb629c4189551a2d022fa330f9573f3",
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        ),
        IdxFile(
            "t10k-labels-idx1-ubyte",
            (10_000,),
            "ec29112dd5afa0611ce80d1b7f02629c",
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
    ),
}


def fetch_mnist(part: str, *, data: str | Path | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The digits (N, 28, 28) uint8 and classes (N,) of `part`, "train" (60,000) or "test" (10,000).

    The files, with or without .gz, are searched in the data directory, in its `mnist` and `MNIST/raw`, and in the
    cache; missing ones are downloaded, into `data` if it is given, otherwise into the cache.
    """
    digits, labels = (_read(file, _find(file, data) or _download(file, data)) for file in FILES[part])
    return digits, labels


def open_mnist(split: str, *, data: str | Path | None = None, images: int | None = None) -> ArrayDataset:
    """The digits as they are, 28x28; `val` is the last 5,000 of the 60,000."""
    part, start, stop = split_range("mnist", split, SPLITS, images)
    digits, labels = fetch_mnist(part, data=data)
    return ArrayDataset("mnist", split, digits[start:stop, None], labels[start:stop], CLASSES)


def find_mnist(data: str | Path | None = None) -> list[Path]:
    """The files that are there."""
    paths = (_find(file, data) for part in FILES.values() for file in part)
    return [path for path in paths if path is not None]


def fetch_files(data: str | Path | None = None) -> list[Path]:
    """The four files, downloaded where there are none, and verified."""
    for part in FILES:
        fetch_mnist(part, data=data)
    return find_mnist(data)


def _find(file: IdxFile, data: str | Path | None) -> Path | None:
    root = data_root(data)
    for directory in (root / "mnist", root / "MNIST" / "raw", root, cache_root() / "mnist"):
        for name in (file.name, file.name + ".gz"):
            if (directory / name).exists():
                return directory / name
    return None


def _download(file: IdxFile, data: str | Path | None) -> Path:
    home = (data_root(data) if data else cache_root()) / "mnist"
    missing = [each.name + ".gz" for part in FILES.values() for each in part if _find(each, data) is None]
    return download(
        [mirror + file.name + ".gz" for mirror in MIRRORS],
        home / (file.name + ".gz"),
        md5=file.md5,
        remedy=f"put {', '.join(missing)} into {home}, or give the directory that has them as --data or BCN_DATA",
    )


def _read(file: IdxFile, path: Path) -> np.ndarray:
    remedy = f"remove {path} and it will be downloaded again, or put the original {file.name}.gz there"
    try:
        content = _read_bytes(path, max(each.size for part in FILES.values() for each in part) + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise BcnError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}; {remedy}") from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != file.sha256:
        raise BcnError(f"{path} {_difference(content, digest, file)}: {remedy}")
    header = 4 * (1 + len(file.shape))
    return np.frombuffer(content, np.uint8, offset=header).reshape(file.shape)


def _read_bytes(path: Path, most: int) -> bytes:
    """The content, unpacked if it is packed, up to a number of bytes."""
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    with gzip.open(path, "rb") if packed else open(path, "rb") as opened:
        return opened.read(most)


def _difference(content: bytes, digest: str, file: IdxFile) -> str:
    for other in (other for part in FILES.values() for other in part):
        if other.sha256 == digest:
            return f"holds what belongs into {other.name}"
    if len(content) != file.size:
        return f"holds {len(content):,} bytes, MNIST's {file.name} has {file.size:,}"
    return f"is not MNIST's {file.name}: its checksum is another"
