"""A run whose disk becomes full."""

from pathlib import Path

import pytest
from helpers.blobs import install, plain
from helpers.runs import assert_same
from helpers.small_disk import mount_disk, resize_disk

from bcn.errors import BcnError
from bcn.training.loop import train


def test_a_run_on_a_full_disk_goes_on_when_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it became full, it says so in one sentence and loses nothing."""
    install(monkeypatch.setitem)
    train(plain("smoke"), seed=0, runs=tmp_path / "undisturbed")
    (undisturbed,) = (tmp_path / "undisturbed").iterdir()
    refusals = set()
    for kilobytes in range(8, 136, 12):
        disk = tmp_path / str(kilobytes)
        with mount_disk(disk, kilobytes=kilobytes):
            with pytest.raises(BcnError, match=r"^cannot [^\n]*No space left on device; [^\n]*$") as refused:
                train(plain("smoke"), seed=0, runs=disk, save_minutes=0)
            refusals.add(str(refused.value).split(":")[0].rpartition("/")[2])
            resize_disk(disk, kilobytes=4000)
            train(plain("smoke"), seed=0, runs=disk)
            assert_same(disk / undisturbed.name, undisturbed)
    assert len(refusals) > 2, refusals
