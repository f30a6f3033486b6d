"""Checkpoints: whole or not there."""

import hashlib
import io
import json
import resource
import signal
import zipfile
from pathlib import Path

import pytest
import torch

from bcn.errors import BcnError
from bcn.training.checkpoint import load_checkpoint, save_checkpoint
from bcn.training.weights import read_weights, write_weights


def write(folder: Path, *steps: int) -> None:
    for step in steps:
        save_checkpoint(folder, step, {"weight": torch.full((50,), float(step))}, {"step": step, "of": torch.ones(3)})


def newest(folder: Path) -> int:
    found = load_checkpoint(folder)
    assert found is not None
    weights, state = found
    assert weights["weight"].tolist() == [state["step"]] * 50
    return int(state["step"])


def test_the_last_two_are_kept(tmp_path: Path) -> None:
    assert load_checkpoint(tmp_path) is None
    write(tmp_path, 1, 2, 30, 4000)
    names = sorted(path.name for path in tmp_path.iterdir())
    suffixes = (".json", ".pt", ".safetensors")
    assert names == [f"step-{step:08d}{suffix}" for step in (30, 4000) for suffix in suffixes]
    assert newest(tmp_path) == 4000


def sign_state(path: Path) -> None:
    """Give the state of a checkpoint its right checksum, as a stranger would."""
    checksums = json.loads(path.with_suffix(".json").read_text())
    checksums["state"] = hashlib.sha256(path.read_bytes()).hexdigest()
    path.with_suffix(".json").write_text(json.dumps(checksums))


def test_a_pickle_that_runs_code_is_refused_without_advice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Code:
        def __reduce__(self) -> tuple[object, tuple[object, ...]]:
            return Path.touch, (tmp_path / "ran",)

    write(tmp_path, 1, 2)
    path = tmp_path / "step-00000002.pt"
    torch.save({"step": 2, "of": Code()}, path)
    sign_state(path)
    assert newest(tmp_path) == 1
    assert not (tmp_path / "ran").exists()
    (line,) = capsys.readouterr().err.splitlines()
    assert "holds more than tensors and plain values, and is refused" in line
    assert "weights_only" not in line


def test_a_torchscript_archive_is_refused_without_advice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of which torch says in another exception, and a warning, to load it with `weights_only=False`."""
    write(tmp_path, 1, 2)
    path, saved = tmp_path / "step-00000002.pt", io.BytesIO()
    torch.save({"step": 2}, saved)
    with zipfile.ZipFile(saved) as source, zipfile.ZipFile(path, "w") as script:
        for entry in source.infolist():
            script.writestr(entry.filename, source.read(entry))
        script.writestr(f"{source.namelist()[0].partition('/')[0]}/constants.pkl", b"")
    sign_state(path)
    assert newest(tmp_path) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "holds more than tensors and plain values, and is refused" in line
    assert "weights_only" not in line


def test_a_state_that_unpacks_to_more_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """torch.save does not compress, but torch.load would unpack what somebody else has compressed."""
    write(tmp_path, 1, 2)
    path, saved = tmp_path / "step-00000002.pt", io.BytesIO()
    torch.save({"step": 2, "of": torch.zeros(1 << 20)}, saved)
    with zipfile.ZipFile(saved) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for entry in source.infolist():
            packed.writestr(entry.filename, source.read(entry))
    assert torch.load(path, weights_only=True)["of"].numel() == 1 << 20
    sign_state(path)
    assert newest(tmp_path) == 1
    assert "its state unpacks from" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", [".json", ".pt", ".safetensors"])
@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "remove"])
def test_a_damaged_newest_falls_back_to_the_one_before(
    tmp_path: Path, suffix: str, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, 1, 2)
    path = tmp_path / f"step-00000002{suffix}"
    content = path.read_bytes()
    middle = len(content) // 2
    if damage == "remove":
        path.unlink()
    elif damage == "flip":
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1 :])
    else:
        path.write_bytes(content[:middle] if damage == "cut" else b"")
    assert newest(tmp_path) == 1
    # Without its .json a checkpoint was never finished, which is no damage.
    assert ("step-00000002 is damaged" in capsys.readouterr().err) == ((suffix, damage) != (".json", "remove"))


def test_when_all_are_damaged_nothing_is_started_over_silently(tmp_path: Path) -> None:
    write(tmp_path, 1, 2)
    for path in tmp_path.glob("*.pt"):
        path.write_bytes(b"")
    with pytest.raises(BcnError, match=r"every checkpoint in .* is damaged"):
        load_checkpoint(tmp_path)


def test_a_full_disk_leaves_the_checkpoints_that_are_there(tmp_path: Path) -> None:
    """A limit on the size of files makes the system refuse the write, as a full disk does."""
    write(tmp_path, 1)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
        with pytest.raises(BcnError, match=r"cannot write .*step-00000002.*; what was there is untouched"):
            save_checkpoint(tmp_path, 2, {"weight": torch.ones(20_000)}, {"step": 2})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert newest(tmp_path) == 1
    assert {path.stem for path in tmp_path.iterdir()} == {"step-00000001"}


def test_what_a_crash_left_of_a_checkpoint_is_removed(tmp_path: Path) -> None:
    write(tmp_path, 1)
    for name in ("step-00000002.safetensors", ".step-00000002.pt.x7f3", "step-00000002.pt"):
        (tmp_path / name).write_bytes(b"half")
    write(tmp_path, 3)
    assert {path.stem for path in tmp_path.iterdir()} == {"step-00000001", "step-00000003"}


def test_weights_files_are_the_same_bytes_every_time(tmp_path: Path) -> None:
    weights = {"b": torch.arange(6.0).view(2, 3).t(), "a": torch.tensor(3)}
    description = {"model": "sort-of-clevr/multirn", "arguments": {"sizes": [64, 64]}, "answers": ["yes", "no"]}
    first, second = (write_weights(tmp_path / name, weights, dict(reversed(description.items()))) for name in "xy")
    assert first == second
    loaded, told = read_weights(tmp_path / "x")
    assert told == description
    assert loaded.keys() == weights.keys()
    assert all(torch.equal(loaded[name], weights[name]) for name in weights)


def test_a_file_that_is_no_safetensors_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken.safetensors").write_bytes(b"hello")
    with pytest.raises(BcnError, match=r"broken\.safetensors is not a whole safetensors file"):
        read_weights(tmp_path / "broken.safetensors")


def test_a_second_checkpoint_of_a_step_leaves_the_first_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the disk is full before the second is there."""
    weights = {"w": torch.arange(3.0)}
    save_checkpoint(tmp_path, 2, weights, {"epoch": 0})

    def epoch() -> int:
        checkpoint = load_checkpoint(tmp_path)
        assert checkpoint is not None
        return int(checkpoint[1]["epoch"])

    def full(path: Path, value: object) -> None:
        raise BcnError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr("bcn.training.checkpoint.write_json", full)
        with pytest.raises(BcnError, match="no space left"):
            save_checkpoint(tmp_path, 2, weights, {"epoch": 1})
    assert epoch() == 0
    for number in (1, 2, 3):
        save_checkpoint(tmp_path, 2, weights, {"epoch": number})
        assert epoch() == number
    assert len(list(tmp_path.glob("*.json"))) == 2
    save_checkpoint(tmp_path, 3, weights, {"epoch": 4})
    assert epoch() == 4
