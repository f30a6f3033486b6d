"""STL-10's binary files: small ones of the same structure, and the real images where they are."""

import hashlib
import io
import os
import shutil
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from bcn.data import stl10
from bcn.data.dataset import Batch
from bcn.data.stl10 import PREPROCESSING, fetch_stl10, open_stl10
from bcn.errors import BcnError

SIZES = {"train": 12, "test": 5}


def official(pixels_NHWC: np.ndarray) -> bytes:
    """Image after image, plane after plane, column after column."""
    content = bytearray()
    for image in pixels_NHWC:
        for channel in range(3):
            for column in range(96):
                content += image[:, column, channel].tobytes()
    return bytes(content)


@pytest.fixture
def pictures() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    return {part: random.integers(0, 256, (size, 96, 96, 3)).astype(np.uint8) for part, size in SIZES.items()}


@pytest.fixture
def small(pictures: dict[str, np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "data" / "stl10_binary"
    directory.mkdir(parents=True)
    for part, size in SIZES.items():
        (directory / f"{part}_X.bin").write_bytes(official(pictures[part]))
        (directory / f"{part}_y.bin").write_bytes(bytes(number % 10 + 1 for number in range(size)))
    (directory / "fold_indices.txt").write_text("".join(f"{fold} {fold + 1} \n" for fold in range(10)))
    for name in stl10.MD5:
        monkeypatch.setitem(stl10.MD5, name, hashlib.md5((directory / name).read_bytes()).hexdigest())
    ends = {"train": ("train", 0, 9), "val": ("train", 9, 12), "train+val": ("train", 0, 12), "test": ("test", 0, 5)}
    for split, value in ends.items():
        monkeypatch.setitem(stl10.SPLITS, split, value)
    monkeypatch.setenv("BCN_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("BCN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(stl10, "URL", "http://127.0.0.1:9/stl10_binary.tar.gz")
    return directory


def test_pixels_and_labels(small: Path, pictures: dict[str, np.ndarray]) -> None:
    dataset = open_stl10("train+val")
    batch = dataset[np.array([11, 0, 3])]
    assert batch.image.shape == (3, 3, 96, 96)
    assert batch.image.is_contiguous()
    assert np.array_equal(batch.image.permute(0, 2, 3, 1).numpy(), pictures["train"][[11, 0, 3]])
    assert batch.answer.tolist() == [1, 0, 3]
    assert (len(open_stl10("train")), len(open_stl10("val")), len(open_stl10("test"))) == (9, 3, 5)
    assert np.array_equal(open_stl10("val").image, dataset.image[9:])
    assert len(open_stl10("test", images=2)) == 2


def test_folds(small: Path, pictures: dict[str, np.ndarray]) -> None:
    fold = open_stl10("fold7", images=2)
    assert np.array_equal(fold[[1]].image[0].permute(1, 2, 0).numpy(), pictures["train"][8])
    right = (small / "fold_indices.txt").read_text()
    (small / "fold_indices.txt").write_text(right.replace("7 8", "7 9"))
    with pytest.raises(BcnError, match=r"fold_indices\.txt .*has md5 .*STL-10's fold_indices\.txt has md5"):
        open_stl10("fold7")
    for wrong in ("1 1\n" * 10, "1 2\n", "\n" * 10, "1 2 99\n" * 10, "one two\n" * 10):
        (small / "fold_indices.txt").write_text(wrong)
        with pytest.raises(BcnError, match=r"fold 7 of .*fold_indices\.txt"):
            open_stl10("fold7")


def test_the_paper_s_normalisation() -> None:
    image = torch.tensor([0, 128, 255], dtype=torch.uint8).view(1, 3, 1, 1)
    expected = [(0 - 0.4914) / 0.2023, (128 / 255 - 0.4822) / 0.1994, (1 - 0.4465) / 0.2010]
    assert np.abs(PREPROCESSING(image).flatten().numpy() - expected).max() < 1e-6


def test_augmentation_is_a_crop_of_the_padded_image(small: Path) -> None:
    dataset = open_stl10("train")
    image = dataset[range(9)].image.repeat(30, 1, 1, 1)
    batch = Batch(image, torch.zeros(len(image)))
    varied = dataset.augment(batch, torch.Generator().manual_seed(0)).image
    assert varied.shape == image.shape
    assert varied.dtype == torch.uint8
    seen = set()
    for before, after in zip(image.numpy(), varied.numpy(), strict=True):
        padded = np.zeros((3, 104, 104), np.uint8)
        padded[:, 4:100, 4:100] = before
        crops = {(top, left): padded[:, top : top + 96, left : left + 96] for top in range(9) for left in range(9)}
        (place,) = (place for place, crop in crops.items() if np.array_equal(crop, after))
        seen.add(place)
    assert {top for top, _ in seen} == {left for _, left in seen} == set(range(9))
    again = dataset.augment(batch, torch.Generator().manual_seed(0))
    assert torch.equal(again.image, varied)
    assert again.answer is batch.answer


@pytest.mark.parametrize("how", ["truncated", "wrong byte", "swapped", "absent"])
def test_bad_file_is_one_sentence(small: Path, how: str) -> None:
    path = small / "test_X.bin"
    content = path.read_bytes()
    if how == "truncated":
        path.write_bytes(content[:1000])
    elif how == "wrong byte":
        path.write_bytes(b"\xff" + content[1:] if content[0] != 255 else b"\0" + content[1:])
    elif how == "swapped":
        shutil.copy(small / "train_X.bin", path)
    else:
        path.unlink()
    expected = {
        "truncated": "(1,000 bytes) has md5",
        "wrong byte": "has md5",
        "swapped": "holds what belongs into train_X.bin",
        "absent": "No such file",
    }[how]
    with pytest.raises(BcnError) as caught:
        open_stl10("test")
    assert expected in str(caught.value)
    assert str(path) in str(caught.value)
    assert "put the official file there again" in str(caught.value)
    open_stl10("train")


def pack(directory: Path, archive: Path) -> None:
    with tarfile.open(archive, "w:gz") as tar:
        for path in sorted(directory.iterdir()):
            tar.add(path, f"stl10_binary/{path.name}")


def test_official_archive_is_unpacked_into_the_cache(small: Path, tmp_path: Path) -> None:
    expected = open_stl10("test").checksum()
    pack(small, small.parent / "stl10_binary.tar.gz")
    shutil.rmtree(small)
    half = tmp_path / "cache" / ".stl10_binary.killed"
    half.mkdir(parents=True)
    assert open_stl10("test").checksum() == expected
    assert not half.exists()
    assert fetch_stl10() == [tmp_path / "cache" / "stl10_binary"]


@pytest.mark.parametrize("how", ["truncated", "not an archive", "another file inside", "a file missing"])
def test_bad_archive_is_one_sentence_and_leaves_nothing(small: Path, tmp_path: Path, how: str) -> None:
    archive = small.parent / "stl10_binary.tar.gz"
    if how == "another file inside":
        (small / "train_y.bin").write_bytes(b"\x01" * 12)
    elif how == "a file missing":
        (small / "train_y.bin").unlink()
    pack(small, archive)
    if how == "truncated":
        archive.write_bytes(archive.read_bytes()[:100_000])
    elif how == "not an archive":
        archive.write_bytes(b"<html>gone</html>")
    shutil.rmtree(small)
    with pytest.raises(BcnError, match=r"stl10_binary\.tar\.gz.*again"):
        open_stl10("test")
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["stl10_binary.lock"]


def test_absent_says_what_to_do(small: Path) -> None:
    shutil.rmtree(small)
    with pytest.raises(BcnError, match="bcn data fetch stl10"):
        open_stl10("test")
    with pytest.raises(BcnError, match=r"cannot download stl10_binary\.tar\.gz.*put it at"):
        fetch_stl10()


@pytest.mark.data("stl10")
@pytest.mark.parametrize("part", ["train", "test"])
def test_real_labels_have_the_published_md5(part: str) -> None:
    path = Path(os.environ["BCN_DATA"]) / "stl10" / f"{part}_y.bin"
    assert hashlib.md5(path.read_bytes()).hexdigest() == stl10.MD5[path.name]
    assert (
        np.bincount(np.frombuffer(path.read_bytes(), np.uint8)).tolist()[1:] == [500 if part == "train" else 800] * 10
    )


@pytest.mark.data("stl10")
def test_real_images_unpack_to_what_they_show(tmp_path: Path) -> None:
    """The lossless copies, written column by column and read back, are the pictures that they were."""
    archive = Path(os.environ["BCN_DATA"]) / "stl10" / "test_images.zip"
    with zipfile.ZipFile(archive) as zipped:
        names = sorted(zipped.namelist())[:3]
        shown = np.stack([np.asarray(Image.open(io.BytesIO(zipped.read(name))).convert("RGB")) for name in names])
    content = np.frombuffer(official(shown), np.uint8)
    assert np.array_equal(stl10.to_rows(content), shown.transpose(0, 3, 1, 2))
