"""Arrays that are made once, kept under the cache root and read memory-mapped."""

import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from bcn.data.files import cache_root, checksum, locked, read_json, write_json
from bcn.errors import BcnError

MANIFEST = "manifest.json"


def cache_directory(name: str, part: str) -> Path:
    return cache_root() / name / part


def cached_parts(name: str) -> list[Path]:
    """The directories that there are of a data set."""
    return sorted(path for path in (cache_root() / name).glob("[!.]*") if path.is_dir())


def open_cache(name: str, part: str, make: Callable[[Path], None]) -> dict[str, np.ndarray]:
    """The arrays that `make` writes as `.npy` files into the directory it is given, by their stems.

    They are made beside their place and renamed into it, so a directory that exists is whole; of two processes one
    makes them and the other waits.
    """
    directory = cache_directory(name, part)
    if not directory.exists():
        with locked(directory.with_name(f"{part}.lock")):
            for left_over in directory.parent.glob(f".{part}.*"):
                shutil.rmtree(left_over)
            if not directory.exists():
                _make(directory, make)
    return {stem: np.load(path, mmap_mode="r") for stem, path in _files(name, directory).items()}


def check_cache(name: str, part: str) -> None:
    """Compare every file with the checksum that was written when it was made."""
    directory = cache_directory(name, part)
    entries = read_json(directory / MANIFEST, _remedy(name, directory))
    for path in _files(name, directory).values():
        if checksum(path) != entries[path.name]["sha256"]:
            raise BcnError(f"{path} does not have the checksum it was made with: {_remedy(name, directory)}")


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


def _files(name: str, directory: Path) -> dict[str, Path]:
    remedy = _remedy(name, directory)
    files = {}
    for file, entry in read_json(directory / MANIFEST, remedy).items():
        path = directory / file
        size = path.stat().st_size if path.exists() else 0
        if size != entry["bytes"]:
            raise BcnError(f"{path} has {size:,} bytes where it was made with {entry['bytes']:,}: {remedy}")
        files[path.stem] = path
    return files


def _remedy(name: str, directory: Path) -> str:
    return f"run `bcn data make {name}`, which makes it anew, or remove {directory}"
