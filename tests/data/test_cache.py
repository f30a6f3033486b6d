"""The cache on a full disk, files that are compared block by block, and what killed processes leave."""

import hashlib
import multiprocessing
import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filelock import FileLock
from helpers.small_disk import mount_disk

from bcn.data import cache as cache_module
from bcn.data.cache import cache_directory, check_cache, open_cache, write_array
from bcn.data.mnist.scaled import make_scaled_mnist
from bcn.errors import BcnError
from bcn.io import write_json

FORK = multiprocessing.get_context("fork")
MEGABYTES = 4
"""of the disk that is too small for the images of 1,000 digits"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with mount_disk(tmp_path / "disk", kilobytes=MEGABYTES << 10):
        yield tmp_path / "disk"


def refuses() -> None:
    with pytest.raises(BcnError, match=r"cannot write .*scaled-mnist.*; set BCN_CACHE to a directory with room"):
        make_scaled_mnist("scaled-mnist-v1", "test")


def refuses_with_a_limit() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MEGABYTES << 20, MEGABYTES << 20))
    refuses()


def test_a_full_disk_is_one_sentence_and_left_empty(
    mnist_sample: None, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a process of its own, which writing through a memory map would end with SIGBUS."""
    monkeypatch.setenv("BCN_CACHE", str(small_disk))
    process = FORK.Process(target=refuses)
    process.start()
    process.join()
    assert process.exitcode == 0
    assert [path.name for path in small_disk.rglob("*") if path.is_file()] == ["test-seed0.lock"]


def test_a_refused_write_is_one_sentence_and_leaves_nothing(
    mnist_sample: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same where no disk can be mounted: with a limit on the size of files."""
    monkeypatch.setenv("BCN_CACHE", str(tmp_path / "limited"))
    process = FORK.Process(target=refuses_with_a_limit)
    process.start()
    process.join()
    assert process.exitcode == 0
    assert [path.name for path in (tmp_path / "limited").rglob("*") if path.is_file()] == ["test-seed0.lock"]


ROWS = np.arange(64 * 256, dtype=np.int32).reshape(64, 256)
"""a block holds four rows, or parts of five: a file begins with a header of 128 bytes"""


def write_rows(directory: Path) -> None:
    write_array(directory / "image.npy", (ROWS[:10], ROWS[10:11], ROWS[11:]), shape=ROWS.shape, dtype=ROWS.dtype)


@pytest.fixture
def by_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a cache that is so large that it is not read as a whole when it is opened."""
    monkeypatch.setenv("BCN_CACHE", str(tmp_path))
    monkeypatch.setattr(cache_module, "QUICK_BYTES", 100)
    monkeypatch.setattr(cache_module, "BLOCK_BYTES", 4096)
    assert np.array_equal(open_cache("set-v1", "train", write_rows)["image"], ROWS)
    return cache_directory("set-v1", "train") / "image.npy"


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def test_arrays_are_written_as_numpy_writes_them(by_blocks: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "whole.npy", ROWS)
    assert by_blocks.read_bytes() == (tmp_path / "whole.npy").read_bytes()


def test_rows_of_a_large_file_are_compared_when_they_are_read(by_blocks: Path) -> None:
    flip(by_blocks, 128 + 32 * 1024 + 5)  # in row 32
    array = open_cache("set-v1", "train", write_rows)["image"]
    assert array.shape == ROWS.shape
    for index in (
        np.array([3, 60, 3]),
        slice(0, 20),
        40,
        (slice(50, 60), 3),
        np.arange(64) < 20,
        np.array([], int),
        -1,
    ):
        assert np.array_equal(array[index], ROWS[index])
    for index in (np.array([3, 32]), slice(None), 32, slice(20, 40, 3), (slice(30, 40), 3), np.arange(64) > 20, -32):
        with pytest.raises(BcnError, match=r"image\.npy does not .* at byte 32,768: remove .*train, and it is made"):
            array[index]
    with pytest.raises(BcnError, match=r"image\.npy does not have the checksum"):
        check_cache("set-v1", "train")


def test_each_block_is_compared_once(by_blocks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    array, lengths, sha256 = open_cache("set-v1", "train", write_rows)["image"], [], hashlib.sha256

    def counted(content: bytes) -> Any:
        lengths.append(len(content))
        return sha256(content)

    monkeypatch.setattr("bcn.data.blocks.hashlib.sha256", counted)
    for _ in range(2):
        array[[5, 6]]
    assert lengths == [4096]


def test_rows_larger_than_a_block_are_compared_whole(
    tmp_path: Path, by_blocks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_module, "BLOCK_BYTES", 300)
    open_cache("set-v1", "small-blocks", write_rows)
    flip(cache_directory("set-v1", "small-blocks") / "image.npy", 128 + 32 * 1024 + 500)
    array = open_cache("set-v1", "small-blocks", write_rows)["image"]
    assert np.array_equal(array[[31, 33]], ROWS[[31, 33]])
    with pytest.raises(BcnError, match="does not have the checksum"):
        array[[32]]


def test_a_damaged_header_of_a_large_file_is_one_sentence(by_blocks: Path) -> None:
    flip(by_blocks, 3)
    with pytest.raises(BcnError, match="at byte 0: remove"):
        open_cache("set-v1", "train", write_rows)


def test_a_large_file_from_before_blocks_is_compared_whole(by_blocks: Path) -> None:
    manifest = by_blocks.with_name("manifest.json")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache_module, "QUICK_BYTES", 1 << 30)
        write_json(manifest, {by_blocks.name: cache_module._entry(by_blocks)})
    open_cache("set-v1", "train", write_rows)
    flip(by_blocks, 3000)
    with pytest.raises(BcnError, match="does not have the checksum"):
        open_cache("set-v1", "train", write_rows)


def test_what_killed_processes_left_of_other_parts_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of parts that nobody will make again; not of one that a process is making."""
    monkeypatch.setenv("BCN_CACHE", str(tmp_path))
    dead, living = tmp_path / "set-v1" / ".old-part.1a.tmp", tmp_path / "set-v1" / ".val.2b.tmp"
    for path in (dead, living):
        path.mkdir(parents=True)
        (path / "image.npy").write_bytes(b"half")
    with FileLock(tmp_path / "set-v1" / "val.lock"):
        open_cache("set-v1", "train", write_rows)
    assert not dead.exists()
    assert living.exists()
