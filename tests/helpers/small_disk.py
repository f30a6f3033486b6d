"""A directory on a file system of its own, which is soon full."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mount_disk(path: Path, *, kilobytes: int) -> Iterator[None]:
    """Mount a small disk in the memory; the test is skipped where that is not possible or not allowed."""
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", str(path)]
    if sys.platform != "linux" or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small disk takes Linux and the permission to")
    try:
        yield
    finally:
        subprocess.run(["umount", str(path)], check=True)


def resize_disk(path: Path, *, kilobytes: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={kilobytes}k", str(path)], check=True)
