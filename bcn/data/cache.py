"""Arrays that are made once, kept under the cache root and read memory-mapped."""

import re
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import dtype_to_descr, write_array_header_1_0

from bcn.data.blocks import BLOCK_BYTES, BlockCheckedArray, Blocks, block_checksums
from bcn.errors import BcnError
from bcn.io import atomic_directory, cache_root, checksum, locked, read_json, write_json

MANIFEST = "manifest.json"
QUICK_BYTES = 1 << 30
"""size up to which a file is compared with its checksum whenever it is opened, which takes about a second"""


def cache_directory(name: str, part: str) -> Path:
    return cache_root() / name / part


def cached_parts(name: str) -> list[Path]:
    """The directories that are cached of a data set."""
    return sorted(path for path in (cache_root() / name).glob("[!.]*") if path.is_dir())


def open_cache(name: str, part: str, make: Callable[[Path], None]) -> dict[str, np.ndarray]:
    """The arrays that `make` writes as `.npy` files into the directory it is given, by their stems.

    They are made in a temporary directory that is renamed, so a directory that exists is whole; of two processes one
    makes them and the other waits. Files are compared with the checksums that were written with them: when they are
    opened, or above QUICK_BYTES block by block as they are indexed.
    """
    directory = cache_directory(name, part)
    _remove_abandoned(directory.parent)
    if not directory.exists():
        with locked(_lock(directory)):
            if not directory.exists():
                _make(directory, make)
    arrays = _Arrays({Path(file).stem: _open(directory / file, entry) for file, entry in _entries(directory).items()})
    arrays.directory = directory
    return arrays


class _Arrays(dict[str, np.ndarray]):
    """The arrays of a cache, of which none may be missing."""

    directory: Path

    def __missing__(self, name: str) -> np.ndarray:
        raise BcnError(f"{self.directory} has no {name}.npy: {_remedy(self.directory)}")


def write_array(path: Path, blocks: Iterable[np.ndarray], *, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Write an array as a `.npy` file, some of its rows at a time.

    A full disk is an OSError, where it would end a process that writes through a memory map.
    """
    with open(path, "wb") as file:
        write_array_header_1_0(file, {"descr": dtype_to_descr(dtype), "fortran_order": False, "shape": shape})
        for block in blocks:
            file.write(np.ascontiguousarray(block, dtype).data)


def check_cache(name: str, part: str) -> None:
    """Compare every file with the checksum that was written when it was made."""
    verify_cache(cache_directory(name, part))


def verify_cache(directory: Path) -> None:
    """The same for the cache in a directory."""
    for name, entry in _entries(directory).items():
        _compare(directory / name, entry)


def drop_cache(name: str, part: str) -> None:
    shutil.rmtree(cache_directory(name, part), ignore_errors=True)


def _lock(directory: Path) -> Path:
    return directory.with_name(f"{directory.name}.lock")


def _remove_abandoned(directory: Path) -> None:
    """Remove what killed processes left of parts that nobody is making, and that nobody may ask for again."""
    for temporary in directory.glob(".*.tmp"):
        part = temporary.with_name(temporary.name[1:].rsplit(".", 2)[0])
        with suppress(BcnError, OSError), locked(_lock(part), busy=f"{part} is being made"):
            shutil.rmtree(temporary)


def _make(directory: Path, make: Callable[[Path], None]) -> None:
    try:
        with atomic_directory(directory) as temporary:
            make(temporary)
            write_json(temporary / MANIFEST, {path.name: _entry(path) for path in sorted(temporary.glob("*.npy"))})
    except OSError as error:
        raise BcnError(
            f"cannot write {directory}: {error.strerror or error}; set BCN_CACHE to a directory with room"
        ) from error


def _entry(path: Path) -> dict[str, Any]:
    """What the manifest says of a file."""
    entry: dict[str, Any] = {"bytes": path.stat().st_size, "sha256": checksum(path)}
    if entry["bytes"] > QUICK_BYTES:
        entry["blocks"] = {"bytes": BLOCK_BYTES, "sha256": block_checksums(path, BLOCK_BYTES)}
    return entry


def _entries(directory: Path) -> dict[str, dict[str, Any]]:
    """What the manifest says of each file, all of which are there with their sizes."""
    entries = read_json(directory / MANIFEST, _remedy(directory))
    if not isinstance(entries, dict) or not entries or not all(map(_is_entry, entries, entries.values())):
        raise BcnError(f"{directory / MANIFEST} does not list files: {_remedy(directory)}")
    for name, entry in entries.items():
        path, size = directory / name, entry["bytes"]
        actual = path.stat().st_size if path.is_file() else 0
        if actual != size or not path.is_file():
            raise BcnError(f"{path} has {actual:,} bytes where it was made with {size:,}: {_remedy(directory)}")
    return entries


def _is_entry(name: str, entry: Any) -> bool:
    """Whether an entry of a manifest is of a file in its directory, with a size and checksums."""
    named = re.fullmatch(r"[\w-]+\.npy", name) is not None
    match entry:
        case {"bytes": int(size), "sha256": str(), "blocks": {"bytes": int(block), "sha256": list(known)}}:
            return named and block > 0 and len(known) == -(-size // block)
        case {"bytes": int(), "sha256": str()}:
            return named and "blocks" not in entry
    return False


def _open(path: Path, entry: dict[str, Any]) -> np.ndarray:
    if entry["bytes"] > QUICK_BYTES and "blocks" in entry:
        known = entry["blocks"]
        return BlockCheckedArray.open(Blocks(path, known["bytes"], known["sha256"], remedy=_remedy(path.parent)))
    _compare(path, entry)
    try:
        array: np.ndarray = np.load(path, mmap_mode="r")
    except (ValueError, EOFError) as error:
        raise BcnError(f"{path} does not hold an array: {_remedy(path.parent)}") from error
    return array


def _compare(path: Path, entry: dict[str, Any]) -> None:
    state = path.stat()
    if _checksum(path, state.st_size, state.st_mtime_ns) != entry["sha256"]:
        raise BcnError(f"{path} does not have the checksum it was made with: {_remedy(path.parent)}")


def _remedy(directory: Path) -> str:
    return f"remove {directory}, and it is made again"


@cache
def _checksum(path: Path, size: int, modified: int) -> str:
    """Computed once of a file that several splits share, until it changes."""
    return checksum(path)
