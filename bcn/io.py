"""Files on disk: where data lives, checksums, atomic writes, locks between processes."""

import errno
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from bcn.errors import BcnError


def data_root(directory: str | Path | None = None) -> Path:
    """The directory of the original files of data sets: `directory`, else `BCN_DATA`, else the cache."""
    if directory is None:
        return Path(os.environ.get("BCN_DATA") or cache_root()).expanduser()
    root = Path(directory).expanduser()
    if not root.is_dir():
        raise BcnError(f"{root} is not a directory: give the one that holds the data, or make it first")
    return root


def cache_root() -> Path:
    """The directory of generated and downloaded files: `BCN_CACHE`, or `bcn` in the user's cache directory."""
    if directory := os.environ.get("BCN_CACHE"):
        return Path(directory).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "bcn"


def checksum(path: Path, algorithm: str = "sha256") -> str:
    """The hexadecimal digest of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path` that replaces it when the block succeeds, and vanishes when it fails.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "note.txt"
    >>> with atomic_write(target) as temporary:
    ...     _ = temporary.write_text("whole or not at all")
    >>> target.read_text()
    'whole or not at all'
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise _cannot_write(path, error, "choose a directory that can be written") from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        raise _cannot_write(path, error, "what was there is untouched") from error
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
        raise _cannot_write(path, error, "choose a file that can be written") from error
    return path


def write_json(path: Path, value: Any) -> None:
    """Write JSON with sorted keys, atomically."""
    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n")


def read_json(path: Path, remedy: str) -> Any:
    """Read what `write_json` wrote.

    Args:
        remedy: what the error says to do about a file that is missing or damaged.
    """
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise BcnError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}; {remedy}") from error


@contextmanager
def locked(path: Path, *, busy: str | None = None) -> Iterator[None]:
    """Hold the lock file `path` against other processes and threads while the block runs; a link is not followed.

    Args:
        busy: the refusal where another holds it; by default, wait.
    """
    lock = FileLock(path, timeout=-1 if busy is None else 0)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            raise BcnError(f"the lock file {path} is a symbolic link, which is not followed: remove the link")
        lock.acquire()
    except Timeout as error:
        assert busy is not None, "without it, acquire waits"
        raise BcnError(busy) from error
    except OSError as error:
        raise _cannot_write(path, error, "choose a directory that can be written") from error
    try:
        yield
    finally:
        lock.release()


def _cannot_write(path: Path, error: OSError, remedy: str) -> BcnError:
    return BcnError(f"cannot write {path}: {error.strerror or error}; {remedy}")
