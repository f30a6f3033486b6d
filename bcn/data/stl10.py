"""STL-10's official binary files: channels column by column, labels 1 to 10, md5 checked whenever they are opened.

N images, B in a batch, C = 3 channels, H x W = 96 x 96 pixels.
"""

import shutil
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import pad

from bcn.data.arrays import ArrayDataset, split_range
from bcn.data.dataset import Batch, Preprocessing
from bcn.data.download import download
from bcn.data.images import random_crop
from bcn.errors import BcnError
from bcn.io import atomic_directory, cache_root, checksum, data_root, locked

URL = "https://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz"
ARCHIVE_MD5 = "91f7769df0f17e558f3565bffb0c7dfb"
FOLDS = "fold_indices.txt"
MD5 = {
    "train_X.bin": "918c2871b30a85fa023e0c44e0bee87f",
    "train_y.bin": "5a34089d4802c674881badbb80307741",
    "test_X.bin": "7f263ba9f9e0b06b93213547f721ac82",
    "test_y.bin": "36f9794fa4beb8a2c72628de14fa638e",
    FOLDS: "4bbf8cd098ab9f87fe03fbcb37c06b28",
}
MAX_FILE_BYTES = 1 << 28
"""of a file in the archive that is unpacked; the largest has 221 MB"""
CLASSES = ("airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck")
SPLITS = {
    "train": ("train", 0, 4_500),
    "val": ("train", 4_500, 5_000),
    "train+val": ("train", 0, 5_000),
    "test": ("test", 0, 8_000),
    **{f"fold{number}": ("train", 0, 1_000) for number in range(10)},
}
PREPROCESSING = Preprocessing(mean=(0.4914, 0.4822, 0.4465), std=(0.2023, 0.1994, 0.2010))
"""appendix A; what the paper calls the variance are the standard deviations that go with these means"""
PADDING = 4


@dataclass(eq=False)
class Stl10(ArrayDataset):
    augments = True

    def augment(self, batch: Batch, generator: torch.Generator) -> Batch:
        """Pad by 4 black pixels and crop 96x96 at random, each image at its own position (appendix A)."""
        image_BCHW, _ = random_crop(pad(batch.image, [PADDING] * 4), PADDING, generator)
        return batch._replace(image=image_BCHW)


def open_stl10(split: str, *, data: str | Path | None = None, images: int | None = None) -> Stl10:
    """The labelled images; `val` is the last 500 of train's 5,000, `fold0` to `fold9` the official folds of 1,000."""
    part, start, stop = split_range("stl10", split, SPLITS, images)
    directory = _directory(data)
    pixels = np.memmap(_verified(directory / f"{part}_X.bin"), np.uint8, mode="r")
    labels = np.fromfile(_verified(directory / f"{part}_y.bin"), np.uint8)
    image_NCHW, answer = to_rows(pixels), labels - 1
    if split.startswith("fold"):
        fold = _fold(directory / FOLDS, int(split.removeprefix("fold")), len(labels))
        image_NCHW, answer = image_NCHW[fold], answer[fold]
    return Stl10("stl10", split, image_NCHW[start:stop], answer[start:stop], CLASSES, preprocessing=PREPROCESSING)


def to_rows(pixels: np.ndarray) -> np.ndarray:
    """(N, 3, 96, 96) rows and columns of the file's bytes, which hold each channel column by column."""
    return pixels.reshape(-1, 3, 96, 96).transpose(0, 1, 3, 2)


def find_stl10(data: str | Path | None = None) -> list[Path]:
    """The directory `stl10_binary`, else the archive, in the data directory or in the cache, if it is there."""
    names, roots = ("stl10_binary", "stl10_binary.tar.gz"), (data_root(data), cache_root())
    return [path for name in names for root in roots if (path := root / name).exists()][:1]


def fetch_stl10(data: str | Path | None = None) -> list[Path]:
    """The directory of STL-10's files, downloaded into `data` or the cache where there is none, and verified."""
    if not find_stl10(data):
        home = data_root(data) if data else cache_root()
        download([URL], home / "stl10_binary.tar.gz", md5=ARCHIVE_MD5)
    directory = _directory(data)
    for name in MD5:
        _verified(directory / name)
    return [directory]


def _directory(data: str | Path | None) -> Path:
    """The directory `stl10_binary`; the official archive is unpacked into the cache first."""
    for path in find_stl10(data):
        return path if path.is_dir() else _unpack(path)
    raise BcnError(
        f"STL-10 is not in {data_root(data)}: run `bcn data fetch stl10` (2.6 GB), or put the official archive there"
    )


def _unpack(archive: Path) -> Path:
    """Take the labelled images, labels and folds out of the archive into the cache, and check them there."""
    directory = cache_root() / "stl10_binary"
    with locked(directory.with_name("stl10_binary.lock")):
        if directory.exists():
            return directory
        try:
            with atomic_directory(directory) as temporary, tarfile.open(archive, "r|gz") as tar:
                for member in tar:
                    name = Path(member.name).name
                    if name in MD5 and member.size > MAX_FILE_BYTES:
                        raise tarfile.TarError(f"{name} in it has {member.size:,} bytes")
                    source = tar.extractfile(member) if name in MD5 else None
                    if source is not None:
                        with open(temporary / name, "wb") as target:
                            shutil.copyfileobj(source, target)
                for name in MD5:
                    _verified(temporary / name, shown=f"{name} in {archive}")
        except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
            raise BcnError(
                f"cannot unpack {archive}: {error}; put the official archive there again, "
                "or set BCN_CACHE to a directory with room"
            ) from error
    return directory


def _verified(path: Path, shown: str | None = None) -> Path:
    remedy = "put the official file there again, or remove its directory and run `bcn data fetch stl10`"
    try:
        digest = checksum(path, "md5")
    except OSError as error:
        raise BcnError(f"cannot read {shown or path}: {error.strerror}; {remedy}") from error
    if digest == MD5[path.name]:
        return path
    swapped = [name for name, md5 in MD5.items() if md5 == digest]
    what = f"holds what belongs into {swapped[0]}" if swapped else f"({path.stat().st_size:,} bytes) has md5 {digest}"
    raise BcnError(f"{shown or path} {what}, STL-10's {path.name} has md5 {MD5[path.name]}: {remedy}")


def _fold(path: Path, number: int, images: int) -> np.ndarray:
    try:
        fold = np.array(path.read_text(encoding="utf-8").splitlines()[number].split(), dtype=np.intp)
        if not len(fold) or fold.min() < 0 or fold.max() >= images or len(np.unique(fold)) < len(fold):
            raise ValueError(f"it names others than the {images:,} images that there are, or one twice")
    except (OSError, IndexError, ValueError) as error:
        raise BcnError(f"cannot read fold {number} of {path}: {error}; put the official {FOLDS} there") from error
    _verified(path)
    return fold
