"""Arrays that are made once, kept under the cache root and read memory-mapped."""

import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np

from bcn.errors import BcnError
from bcn.io import cache_root, checksum, locked, read_json, write_json

MANIFEST = "manifest.json"
QUICK = 1 << 30
"""bytes that can be read and compared, in about a second, whenever they are opened"""


def cache_directory(name: str, part: str) -> Path:
    return cache_root() / name / part


def cached_parts(name: str) -> list[Path]:
    """The directories that there are of a data set."""
    return sorted(path for path in (cache_root() / name).glob("[!.]*") if path.is_dir())


def open_cache(name: str, part: str, make: Callable[[Path], None]) -> dict[str, np.ndarray]:
    """The arrays that `make` writes as `.npy` files into the directory it is given, by their stems.

    They are made beside their place and renamed into it, so a directory that exists is whole; of two processes one
    makes them and the other waits. What is on disk is compared with the checksums that were written with it, except for
    files above QUICK bytes, which only `check_cache` reads as a whole.
    """
    directory = cache_directory(name, part)
    if not directory.exists():
        with locked(directory.with_name(f"{part}.lock")):
            for left_over in directory.parent.glob(f".{part}.*"):
                shutil.rmtree(left_over)
            if not directory.exists():
                _make(directory, make)
    return {stem: np.load(path, mmap_mode="r") for stem, path in _files(name, directory, largest=QUICK).items()}


def check_cache(name: str, part: str) -> None:
    """Compare every file with the checksum that was written when it was made."""
    _files(name, cache_directory(name, part))


def drop_cache(name: str, part: str) -> None:
    shutil.rmtree(cache_directory(name, part), ignore_errors=True)


def _make(directory: Path, make: Callable[[Path], None]) -> None:
    temporary = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
    try:
        make(temporary)
        paths = sorted(temporary.glob("*.npy"))
        write_json(
            temporary / MANIFEST,
            {path.name: {"bytes": path.stat().st_size, "sha256": checksum(path)} for path in paths},
        )
        temporary.chmod(0o755)
        temporary.rename(directory)
    except OSError as error:
        raise BcnError(
            f"cannot write {directory}: {error.strerror or error}; set BCN_CACHE to a directory with room"
        ) from error
    finally:
        with suppress(FileNotFoundError):
            shutil.rmtree(temporary)


def _files(name: str, directory: Path, *, largest: float = float("inf")) -> dict[str, Path]:
    """The files of a cache by their stems; those up to `largest` bytes are whole and as they were made."""
    entries, files = read_json(directory / MANIFEST, _remedy(name, directory)), {}
    if not isinstance(entries, dict) or not all(
        isinstance(entry, dict) and set(entry) == {"bytes", "sha256"} for entry in entries.values()
    ):
        raise BcnError(f"{directory / MANIFEST} does not list files: {_remedy(name, directory)}")
    for file, entry in entries.items():
        path, size = directory / file, entry["bytes"]
        found = path.stat() if path.is_file() else None
        if found is None or found.st_size != size:
            raise BcnError(
                f"{path} has {found.st_size if found else 0:,} bytes where it was made with {size:,}: "
                f"{_remedy(name, directory)}"
            )
        if size <= largest and _checksum(path, size, found.st_mtime_ns) != entry["sha256"]:
            raise BcnError(f"{path} does not have the checksum it was made with: {_remedy(name, directory)}")
        files[path.stem] = path
    return files


@cache
def _checksum(path: Path, size: int, modified: int) -> str:
    """Of a file that splits share, computed once."""
    return checksum(path)


def _remedy(name: str, directory: Path) -> str:
    return f"remove {directory}, and it is made anew"
