"""Files on disk: where data lives, checksums, atomic writes, locks between processes."""

import errno
import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bcn.errors import BcnError


def data_root(given: str | Path | None = None) -> Path:
    """Where the original files of a data set are looked for: what is given, `BCN_DATA`, or the cache."""
    if given is None:
        return Path(os.environ.get("BCN_DATA") or cache_root()).expanduser()
    root = Path(given).expanduser()
    if not root.is_dir():
        raise BcnError(f"{root} is not a directory: give one that there is as the place of the data, or make it first")
    return root


def cache_root() -> Path:
    """Where generated and downloaded files are written: `BCN_CACHE`, or `bcn` in the user's cache directory."""
    if given := os.environ.get("BCN_CACHE"):
        return Path(given).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "bcn"


def checksum(path: Path, algorithm: str = "sha256") -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path` that replaces it when the block ends well, and vanishes when it does not."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise BcnError(f"cannot write {path}: {error.strerror}; choose a directory that can be written") from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        raise BcnError(f"cannot write {path}: {error.strerror or error}; what was there is untouched") from error
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(path: Path) -> Path:
    """Refuse a file that cannot be written before the work is done that belongs in it."""
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        path.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise BcnError(f"cannot write {path}: {error.strerror}; choose a file that can be written") from error
    return path


def write_json(path: Path, value: Any) -> None:
    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n")


def read_json(path: Path, remedy: str) -> Any:
    """What `write_json` wrote; `remedy` says in the error what to do about a file that is not there or not whole."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise BcnError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}; {remedy}") from error


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path` against other processes while the block runs."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = open(path, "w")  # noqa: SIM115
    except OSError as error:
        raise BcnError(f"cannot write {path}: {error.strerror}; choose a directory that can be written") from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
