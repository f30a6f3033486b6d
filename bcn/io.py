"""Files on disk: where data lives, checksums, atomic writes, locks between processes."""

import errno
import hashlib
import json
import os
import platform
import re
import secrets
import shutil
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
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


def use_data(directory: Path | None) -> None:
    """Make `directory` the default of `data_root`, here and in processes that are started from here."""
    if directory is not None:
        os.environ["BCN_DATA"] = str(data_root(directory).resolve())


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

    When it returns, the file and its name survive a power failure.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "note.txt"
    >>> with atomic_write(target) as temporary:
    ...     _ = temporary.write_text("whole or not at all")
    >>> target.read_text()
    'whole or not at all'
    """
    temporary = _temporary(path)
    try:
        make_directory(path.parent)
        _remove_abandoned(path.parent)
        temporary.touch(exist_ok=False)  # with the permissions that the umask leaves
    except OSError as error:
        raise _cannot_write(path, error, "choose a directory that can be written") from error
    try:
        yield temporary
        _sync_file(temporary)
        temporary.replace(path)
        sync_directory(path.parent)
    except OSError as error:
        raise _cannot_write(path, error, "what was there is untouched") from error
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_directory(path: Path) -> Iterator[Path]:
    """The same for a directory of files that is not there yet. The caller holds a lock on it."""
    for abandoned in path.parent.glob(f".{path.name}.*"):
        shutil.rmtree(abandoned)
    temporary = _temporary(path)
    temporary.mkdir()
    try:
        yield temporary
        for file in temporary.iterdir():
            _sync_file(file)
        sync_directory(temporary)
        temporary.rename(path)
        sync_directory(path.parent)
    finally:
        with suppress(FileNotFoundError):
            shutil.rmtree(temporary)


def make_directory(path: Path) -> None:
    """Make a directory, and those above it, that survive a power failure."""
    if not path.is_dir():
        make_directory(path.parent)
        path.mkdir(exist_ok=True)
        sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Let the names in a directory survive a power failure, where the system has a call for that."""
    if os.name == "nt":
        return
    try:
        handle = os.open(path, os.O_RDONLY)
    except PermissionError:  # a directory that may be written but not read
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # of some network file systems
            raise
    finally:
        os.close(handle)


def remove_temporaries(directory: Path) -> None:
    """Remove what killed processes left of files that they were writing; the caller knows that no other is at work."""
    for path in directory.glob(".*.tmp"):
        with suppress(OSError):  # it belongs to somebody else
            path.unlink()


@cache
def _remove_abandoned(directory: Path) -> None:
    """The same, once in the life of a process, where others may be at work."""
    for path in directory.glob(".*.tmp"):
        with suppress(OSError):  # another process removes it as well, or it belongs to somebody else
            if path.is_file() and _is_abandoned(path):
                path.unlink()


def _temporary(path: Path) -> Path:
    """A name that says which process on which machine writes it."""
    return path.with_name(f".{path.name}.{_machine()}-{os.getpid()}-{secrets.token_hex(4)}.tmp")


def _is_abandoned(temporary: Path) -> bool:
    """Whether the process that wrote it has ended; of another machine's, whether it is older than any write takes."""
    writer = re.search(r"\.(\w+)-(\d+)-\w+\.tmp$", temporary.name)
    if writer is not None and writer[1] == _machine() and os.name != "nt":  # os.kill ends a process on Windows
        try:
            os.kill(int(writer[2]), 0)
        except ProcessLookupError:
            return True
        except (PermissionError, OverflowError):
            pass
    return time.time() - temporary.stat().st_mtime > 3600


def _machine() -> str:
    return f"{zlib.crc32(platform.node().encode()):08x}"


def _sync_file(path: Path) -> None:
    with open(path, "r+b") as file:
        os.fsync(file.fileno())


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
        temporary.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def read_json(path: Path, remedy: str) -> Any:
    """Read what `write_json` wrote.

    Args:
        remedy: what the error says to do about a file that is missing or damaged.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except RecursionError as error:
        raise BcnError(f"cannot read {path}: it has too many brackets within brackets; {remedy}") from error
    except (OSError, ValueError) as error:
        raise BcnError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}; {remedy}") from error


def with_checksum(record: dict[str, Any]) -> dict[str, Any]:
    """A JSON object, with its own SHA-256 under `checksum`."""
    return record | {"checksum": hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()}


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Write a JSON object with its checksum, atomically."""
    write_json(path, with_checksum(record))


def read_record(path: Path, remedy: str) -> dict[str, Any]:
    """Read what `write_record` wrote, without the checksum, which is verified; versions before 0.2 wrote none.

    Args:
        remedy: what the error says to do about a file that is missing or damaged.
    """
    record = read_json(path, remedy)
    if not isinstance(record, dict):
        raise BcnError(f"cannot read {path}: it is no JSON object; {remedy}")
    content = {key: value for key, value in record.items() if key != "checksum"}
    if (record != with_checksum(content)) if "checksum" in record else _has_lost_checksum(record):
        raise BcnError(f"{path} is damaged: its checksum is wrong; {remedy}")
    return content


def _has_lost_checksum(record: dict[str, Any]) -> bool:
    """Whether a record without a checksum was written with one: its version says so, or it has another name now."""
    versions = record.get("versions")
    written_by = versions.get("bcn") if isinstance(versions, dict) else None
    if written_by is not None and not str(written_by).startswith("0.1."):
        return True
    for name, value in record.items():
        if isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value):
            rest = {key: other for key, other in record.items() if key != name}
            if value == with_checksum(rest)["checksum"]:
                return True
    return False


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
