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
    makes them and the other waits. Files are compared with the checksums that were written with them, except for
    files above QUICK_BYTES, which only `check_cache` reads as a whole.
    """
    directory = cache_directory(name, part)
    if not directory.exists():
        with locked(directory.with_name(f"{part}.lock")):
            for stale in directory.parent.glob(f".{part}.*"):  # of processes that were killed
                shutil.rmtree(stale)
            if not directory.exists():
                _make(directory, make)
    return {stem: np.load(path, mmap_mode="r") for stem, path in _files(directory, max_bytes=QUICK_BYTES).items()}


def check_cache(name: str, part: str) -> None:
    """Compare every file with the checksum that was written when it was made."""
    _files(cache_directory(name, part))


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


def _files(directory: Path, *, max_bytes: float = float("inf")) -> dict[str, Path]:
    """The files of a cache by their stems; those up to `max_bytes` are compared with their checksums."""
    remedy, files = f"remove {directory}, and it is made again", {}
    entries = read_json(directory / MANIFEST, remedy)
    if not isinstance(entries, dict) or not all(
        isinstance(entry, dict) and set(entry) == {"bytes", "sha256"} for entry in entries.values()
    ):
        raise BcnError(f"{directory / MANIFEST} does not list files: {remedy}")
    for name, entry in entries.items():
        path, size = directory / name, entry["bytes"]
        state = path.stat() if path.is_file() else None
        if state is None or state.st_size != size:
            actual = state.st_size if state else 0
            raise BcnError(f"{path} has {actual:,} bytes where it was made with {size:,}: {remedy}")
        if size <= max_bytes and _checksum(path, size, state.st_mtime_ns) != entry["sha256"]:
            raise BcnError(f"{path} does not have the checksum it was made with: {remedy}")
        files[path.stem] = path
    return files


@cache
def _checksum(path: Path, size: int, modified: int) -> str:
    """Computed once of a file that several splits share, until it changes."""
    return checksum(path)
