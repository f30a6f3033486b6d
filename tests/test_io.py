"""Files on disk: atomic writes, locks, records, and the cache."""

import json
import multiprocessing
import os
import re
import select
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from bcn.data.cache import cache_directory, check_cache, open_cache
from bcn.errors import BcnError
from bcn.io import (
    atomic_write,
    cache_root,
    checksum,
    data_root,
    locked,
    read_json,
    read_record,
    write_json,
    write_record,
)


def files(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir() if path.suffix != ".lock"}


def _half(path: Path) -> None:
    path.write_text("half")
    raise RuntimeError


def test_atomic_write_keeps_the_old_file_when_the_block_fails(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("good")
    with pytest.raises(RuntimeError), atomic_write(path) as temporary:
        _half(temporary)
    assert path.read_text() == "good"
    assert files(tmp_path) == {"file"}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no umask")
@pytest.mark.parametrize(("mask", "file_mode", "directory_mode"), [(0o077, 0o600, 0o700), (0o002, 0o664, 0o775)])
def test_the_umask_decides_who_may_read(cache: Path, mask: int, file_mode: int, directory_mode: int) -> None:
    before = os.umask(mask)
    try:
        write_json(cache / "new" / "a.json", 1)
        open_cache("set-v1", "train", write_arrays)
    finally:
        os.umask(before)
    files = [cache / "new" / "a.json", *(cache / "set-v1" / "train").iterdir()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {file_mode}
    directories = [cache / "new", cache / "set-v1", cache / "set-v1" / "train"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in directories} == {directory_mode}


def write_and_wait(path: Path) -> None:
    with atomic_write(path) as temporary:
        temporary.write_text("half")
        signal.pause()


def test_temporary_files_of_killed_processes_are_removed_at_the_next_start(tmp_path: Path) -> None:
    """At once, where the process that wrote them has ended; else when they are older than any write takes."""
    fork = multiprocessing.get_context("fork")
    killed, living = (fork.Process(target=write_and_wait, args=(tmp_path / name,)) for name in ("killed", "living"))
    for process in (killed, living):
        process.start()
        while not list(tmp_path.glob(f".{'killed' if process is killed else 'living'}.*")):
            time.sleep(0.01)
    killed.kill()
    killed.join()
    old, young, own = tmp_path / ".a.json.0-12-3.tmp", tmp_path / ".b.json.0-34-5.tmp", tmp_path / ".gitignore"
    for path in (old, young, own):
        path.write_text("half")
    os.utime(old, (0, 0))
    os.utime(own, (0, 0))
    write_json(tmp_path / "c.json", 1)
    (at_work,) = tmp_path.glob(".living.*.tmp")
    living.kill()
    living.join()
    assert files(tmp_path) == {"c.json", young.name, own.name, at_work.name}


def test_atomic_write_into_a_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(BcnError, match="cannot write"), atomic_write(tmp_path / "file" / "below"):
        pass
    with pytest.raises(BcnError, match="cannot write"), locked(tmp_path / "file" / "lock"):
        pass


def test_json_that_is_not_whole_is_one_sentence(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"b": 1})
    assert read_json(tmp_path / "a.json", "do this") == {"b": 1}
    (tmp_path / "a.json").write_text('{"b": ')
    with pytest.raises(BcnError, match=r"a\.json: .*do this"):
        read_json(tmp_path / "a.json", "do this")
    with pytest.raises(BcnError, match=r"none\.json: No such file.*do this"):
        read_json(tmp_path / "none.json", "do this")


def test_roots(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BCN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("BCN_DATA", raising=False)
    assert data_root() == cache_root() == tmp_path / "cache"
    monkeypatch.setenv("BCN_DATA", str(tmp_path / "data"))
    assert data_root() == tmp_path / "data"
    (tmp_path / "given").mkdir()
    assert data_root(str(tmp_path / "given")) == tmp_path / "given"
    for wrong in (tmp_path / "missing", Path(__file__)):
        with pytest.raises(BcnError, match=re.escape(f"{wrong} is not a directory")):
            data_root(wrong)


def write_arrays(directory: Path) -> None:
    np.save(directory / "image.npy", np.arange(1000, dtype=np.int32))
    np.save(directory / "answer.npy", np.arange(10))


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("BCN_CACHE", str(tmp_path))
    return tmp_path


def test_cache_is_made_once_and_mapped(cache: Path) -> None:
    made: list[Path] = []

    def make(directory: Path) -> None:
        made.append(directory)
        write_arrays(directory)

    for _ in range(2):
        arrays = open_cache("set-v1", "train", make)
        assert isinstance(arrays["image"], np.memmap)
        assert arrays["image"].tolist() == list(range(1000))
    assert len(made) == 1
    check_cache("set-v1", "train")
    manifest = json.loads((cache / "set-v1" / "train" / "manifest.json").read_text())
    assert manifest["image.npy"]["sha256"] == checksum(cache / "set-v1" / "train" / "image.npy")


def test_cache_that_could_not_be_made_leaves_nothing(cache: Path) -> None:
    def fails(directory: Path) -> None:
        write_arrays(directory)
        raise OSError(28, "No space left on device")

    with pytest.raises(BcnError, match="No space left on device"):
        open_cache("set-v1", "train", fails)
    assert files(cache / "set-v1") == set()
    assert open_cache("set-v1", "train", write_arrays)["answer"].tolist() == list(range(10))


def test_left_over_of_a_killed_process_is_removed(cache: Path) -> None:
    half = cache / "set-v1" / ".train.abc"
    half.mkdir(parents=True)
    (half / "image.npy").write_bytes(b"half")
    open_cache("set-v1", "train", write_arrays)
    assert files(cache / "set-v1") == {"train"}


@pytest.mark.parametrize(
    "damage", ["truncate", "remove", "garbage", "manifest", "no manifest", "another manifest", "no checksums"]
)
def test_damaged_cache_is_one_sentence(cache: Path, damage: str) -> None:
    open_cache("set-v1", "train", write_arrays)
    path = cache_directory("set-v1", "train") / "image.npy"
    if damage == "truncate":
        path.write_bytes(path.read_bytes()[:-5])
    elif damage == "remove":
        path.unlink()
    elif damage == "garbage":
        path.write_bytes(bytes(path.stat().st_size))
    else:
        path = path.with_name("manifest.json")
        if damage == "manifest":
            path.write_text(path.read_text()[:20])
        elif damage == "no manifest":
            path.unlink()
        else:
            path.write_text({"another manifest": "[1, 2]", "no checksums": '{"image.npy": {"bytes": 4128}}'}[damage])
    with pytest.raises(BcnError, match=rf"{path.name}.*remove .*set-v1/train, and it is made again"):
        open_cache("set-v1", "train", write_arrays)


def test_changed_byte_in_the_cache_is_found(cache: Path) -> None:
    open_cache("set-v1", "train", write_arrays)
    path = cache_directory("set-v1", "train") / "image.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(BcnError, match=r"image\.npy does not have the checksum"):
        open_cache("set-v1", "train", write_arrays)
    with pytest.raises(BcnError, match=r"image\.npy does not have the checksum"):
        check_cache("set-v1", "train")


WRITER = """
import sys
from pathlib import Path
import numpy as np
from bcn.data.cache import open_cache

def make(directory):
    with open(sys.argv[1], "a") as file:
        file.write("made\\n")
    print("making", flush=True)
    sys.stdin.readline()  # until the test says go on
    np.save(directory / "image.npy", np.zeros(100_000))

print(open_cache("set-v1", "train", make)["image"].sum())
"""


def test_two_processes_end_with_one_good_cache(cache: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-c", WRITER, str(log)]
    first, second = (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
    )
    assert first.stdout
    assert second.stdout
    ready, _, _ = select.select([first.stdout, second.stdout], [], [])
    making, waiting = (first, second) if first.stdout in ready else (second, first)
    assert making.stdout is not None
    assert making.stdout.readline() == "making\n"
    assert making.communicate("go on\n")[0] == "0.0\n"
    assert waiting.communicate()[0] == "0.0\n"
    assert log.read_text() == "made\n"
    check_cache("set-v1", "train")


def test_lock_keeps_others_out(tmp_path: Path) -> None:
    """Other processes, which see the lock file taken, and other threads, which wait."""
    path = tmp_path / "lock"
    attempt = f"from filelock import FileLock; FileLock({str(path)!r}).acquire(timeout=0)"
    order, begun = [], threading.Event()

    def second() -> None:
        begun.set()
        with locked(path):
            order.append("second")

    with locked(path):
        refused = subprocess.run([sys.executable, "-c", attempt], capture_output=True, text=True)
        assert "Timeout" in refused.stderr
        thread = threading.Thread(target=second)
        thread.start()
        begun.wait()
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
    subprocess.run([sys.executable, "-c", attempt], check=True)


@pytest.mark.parametrize("there", [True, False])
def test_a_lock_file_that_is_a_link_is_refused_and_its_target_left_alone(tmp_path: Path, there: bool) -> None:
    target, path = tmp_path / "precious", tmp_path / "lock"
    if there:
        target.write_text("whole")
    path.symlink_to(target)
    with (
        pytest.raises(BcnError, match=r"lock is a symbolic link, .*: remove the link"),
        locked(path),
    ):
        pass
    assert path.is_symlink()
    assert target.read_text() == "whole" if there else not target.exists()


def test_a_record_that_lost_its_checksum_is_damaged(tmp_path: Path) -> None:
    """One flipped bit makes the word "checksum" another one; records of version 0.1 never had it, and are read."""
    path = tmp_path / "record.json"
    content = {"accuracy": 0.5, "versions": {"bcn": "0.2.0"}}
    write_record(path, content)
    assert read_record(path, "make it again") == content
    write_json(path, content)
    with pytest.raises(BcnError, match="its checksum is wrong; make it again"):
        read_record(path, "make it again")
    write_record(path, {"accuracy": 0.5})
    path.write_text(path.read_text().replace("checksum", "chdcksum"))
    with pytest.raises(BcnError, match="its checksum is wrong; make it again"):
        read_record(path, "make it again")
    for old in ({"accuracy": 0.5, "versions": {"bcn": "0.1.0"}}, {"accuracy": 0.5, "sha256": "0" * 64}):
        write_json(path, old)
        assert read_record(path, "make it again") == old
