"""`bcn doctor PATH`: whatever is damaged in a run, a cache or a data set is named, and nothing that is whole."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from helpers.blobs import install, plain
from helpers.command import exit_code, run_bcn
from helpers.squares import own_layout

from bcn.data.cache import open_cache
from bcn.training.loop import train


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        install(patch.setitem)
        runs = tmp_path_factory.mktemp("finished") / "runs"
        record = train(plain("smoke"), seed=0, runs=runs)
        yield runs / record["run"]


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    return shutil.copytree(finished, tmp_path / "runs" / finished.name)


def test_a_whole_run_is_said_to_be(run: Path) -> None:
    said = run_bcn("doctor", run)
    names = ("manifest.json", "step-00000015", "step-00000020", "metrics.jsonl", "best", "last", "record.json")
    assert all(name in line for name, line in zip(names, said.splitlines(), strict=True))
    assert run_bcn("doctor", run.parent) == said


def test_a_run_that_is_not_finished_is_no_damage(run: Path) -> None:
    (run / "record.json").unlink()
    assert run_bcn("doctor", run).endswith("is not finished: the same command goes on with it\n")


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


FILES = (
    "manifest.json", "metrics.jsonl", "best.safetensors", "last.safetensors", "record.json",
    "checkpoint/step-00000020.json", "checkpoint/step-00000020.pt", "checkpoint/step-00000015.safetensors",
)  # fmt: skip


@pytest.mark.parametrize("damage", [flip, cut, empty, Path.unlink], ids=["flip", "cut", "empty", "unlink"])
@pytest.mark.parametrize("file", FILES)
def test_every_damage_is_named(
    run: Path, file: str, damage: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    damage(run / file)
    if damage is Path.unlink and file in ("record.json", "checkpoint/step-00000020.json"):
        run_bcn("doctor", run)  # a run or a checkpoint that is not finished
        return
    assert exit_code("doctor", run) == 2
    captured = capsys.readouterr()
    assert "damaged; what to do is said above" in captured.err
    assert (run / file).with_suffix("").name in captured.out
    assert "is not finished" not in captured.out


def test_a_curve_that_is_not_the_records_is_named(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line less, in the file and in the checkpoint that holds a copy."""
    shutil.rmtree(run / "checkpoint")
    lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "metrics.jsonl").write_text("".join(lines[1:]))
    assert exit_code("doctor", run) == 2
    assert "record.json: has another curve than metrics.jsonl" in capsys.readouterr().out


def write_arrays(directory: Path) -> None:
    np.save(directory / "image.npy", np.arange(1000, dtype=np.int32))


def list_nothing(path: Path) -> None:
    path.write_text("{}")


@pytest.mark.parametrize(
    "damage", [flip, cut, empty, Path.unlink, list_nothing], ids=["flip", "cut", "empty", "unlink", "list nothing"]
)
@pytest.mark.parametrize("file", ["image.npy", "manifest.json"])
def test_a_damaged_cache_is_named(
    tmp_path: Path,
    file: str,
    damage: Callable[[Path], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("BCN_CACHE", str(tmp_path))
    for part in ("train", "test"):
        open_cache("set-v1", part, write_arrays)
    assert run_bcn("doctor", tmp_path).count("every file has the checksum it was made with") == 2
    damage(tmp_path / "set-v1" / "test" / file)
    for path in (tmp_path, tmp_path / "set-v1", tmp_path / "set-v1" / "test"):
        assert exit_code("doctor", path) == 2
        assert f"remove {tmp_path / 'set-v1' / 'test'}, and it is made again" in capsys.readouterr().out


def test_data_of_ones_own_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = own_layout(tmp_path / "mine")
    assert "no problems found" in run_bcn("doctor", root)
    (root / "pictures" / "3.png").write_bytes(b"no picture")
    assert exit_code("doctor", root) == 2
    assert "3.png" in capsys.readouterr().out


def test_published_data_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "data" / "stl10_binary").mkdir(parents=True)
    (tmp_path / "data" / "stl10_binary" / "train_X.bin").write_bytes(b"damaged")
    assert exit_code("doctor", tmp_path / "data") == 2
    assert "train_X.bin" in capsys.readouterr().out


def test_what_holds_nothing_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    for path, sentence in {
        tmp_path: "holds neither a run nor a cache nor data",
        tmp_path / "notes.txt": "is not a directory",
        tmp_path / "missing": "is not a directory",
    }.items():
        assert exit_code("doctor", path) == 2
        assert sentence in capsys.readouterr().err


def test_a_checkpoint_whose_lines_are_not_in_the_file_is_named(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    assert all("crc32" in json.loads(line) for line in lines)
    (run / "metrics.jsonl").write_text("".join(lines[:-1]))
    assert exit_code("doctor", run) == 2
    assert f"metrics.jsonl: damaged in line {len(lines)}" in capsys.readouterr().out
