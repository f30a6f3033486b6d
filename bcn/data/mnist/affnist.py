"""affNIST, read from its published files, and affine-mnist-v1, made from MNIST with affNIST's ranges.

affNIST rotates a digit by -20 .. 20 degrees, shears it by -0.2 .. 0.2, scales it by 0.8 .. 1.2 in each direction, and
places it in 40x40 pixels wherever it is whole. affine-mnist-v1 does the same to each test digit once, in this
order: scale, shear, rotate, all about the centre of the 28x28 pixels. The two do not hold the same images.
"""

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bcn.data.arrays import ArrayDataset, split_range
from bcn.data.download import download
from bcn.data.mnist.matlab import parse_matlab
from bcn.data.mnist.mnist import CLASSES, SPLITS, fetch_mnist
from bcn.data.mnist.resample import centre_range, rotation_matrices, warp_affine
from bcn.data.random import integers_between, philox_bits
from bcn.errors import BcnError
from bcn.io import atomic_write, cache_root, checksum, data_root

URL = "https://www.cs.toronto.edu/~tijmen/affNIST/32x/transformed/"
SIDE = 40
IMAGE_BYTES = 8192
"""more than a file holds of an image: 1,600 pixels, its class, and two matrices and a text of its transformation"""
AFFNIST_SPLITS = {
    "train": ("training", 0, 1_600_000),
    "val": ("validation", 0, 320_000),
    "train+val": ("training_and_validation", 0, 1_920_000),
    "test": ("test", 0, 320_000),
}


def open_affnist(split: str, *, data: str | Path | None = None, images: int | None = None) -> ArrayDataset:
    """The published images; of a set in batches only as many files are read as `images` needs."""
    part, _, stop = split_range("affnist", split, AFFNIST_SPLITS, images)
    path = locate_affnist(part, data)
    if path is None:
        raise BcnError(
            f"affNIST's {part} is not in {data_root(data) / 'affnist'}: run `bcn data fetch affnist`, "
            f"or put the published {part}.mat.zip or {part}_batches.zip there"
        )
    _compare(path)
    pixels, labels, count = [], [], 0
    for shown, content in _contents(path, _max_bytes(part)):
        image_NP, label_N = _parse(shown, content, _max_bytes(part))
        pixels.append(image_NP)
        labels.append(label_N)
        count += len(label_N)
        if count >= stop:
            break
    if count < stop:
        raise BcnError(f"{path} holds {count:,} images of the {stop:,} wanted: put all of the published files there")
    image_NCHW = np.concatenate(pixels)[:stop].reshape(-1, 1, SIDE, SIDE)
    return ArrayDataset("affnist", split, image_NCHW, np.concatenate(labels)[:stop], CLASSES)


def locate_affnist(part: str, data: str | Path | None = None) -> Path | None:
    """What holds `part` in `affnist/`: `test.mat`, the directory `test_batches`, or either as the published zip."""
    names = (f"{part}.mat", f"{part}_batches", f"{part}.mat.zip", f"{part}_batches.zip")
    paths = [root / "affnist" / name for root in (data_root(data), cache_root()) for name in names]
    return next((path for path in paths if path.exists()), None)


def find_affnist(data: str | Path | None = None) -> list[Path]:
    """What is there of the published files."""
    paths = (locate_affnist(part, data) for part, _, _ in AFFNIST_SPLITS.values())
    return [path for path in paths if path is not None]


def fetch_affnist(data: str | Path | None = None) -> list[Path]:
    """The published test set, downloaded into `data` or the cache where there is none.

    No checksum is published. So the file comes over https and is read whole; its SHA-256 is then written beside it, and
    the file is compared with that from then on.
    """
    home = (data_root(data) if data else cache_root()) / "affnist"
    found = locate_affnist("test", data)
    path = found or download([URL + "test.mat.zip"], home / "test.mat.zip", md5=None)
    for shown, content in _contents(path, _max_bytes("test")):
        _parse(shown, content, _max_bytes("test"))
    _compare(path)
    if found is None:
        with atomic_write(_checksum_file(path)) as temporary:
            temporary.write_text(f"{checksum(path)}  {path.name}\n", encoding="utf-8")  # as sha256sum writes it
    return [path]


def _checksum_file(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def _compare(path: Path) -> None:
    """Compare a file with the checksum that was written when it was fetched, if it was."""
    kept = _checksum_file(path)
    if (
        kept.is_file()
        and path.is_file()
        and kept.read_text(encoding="utf-8", errors="replace").split(maxsplit=1)[:1] != [checksum(path)]
    ):
        raise BcnError(
            f"{path} does not have the SHA-256 in {kept.name} that it was fetched with: remove both and run "
            "`bcn data fetch affnist`"
        )


def _max_bytes(part: str) -> int:
    """How many bytes a file of this part may unpack to."""
    images = max((stop for name, _, stop in AFFNIST_SPLITS.values() if name == part), default=0)
    return images * IMAGE_BYTES + (1 << 20)


def make_affine_mnist(
    split: str, *, data: str | Path | None = None, images: int | None = None, seed: int = 0
) -> ArrayDataset:
    """Each test digit of MNIST, transformed once within affNIST's ranges."""
    part, start, stop = split_range("affine-mnist-v1", split, {"test": SPLITS["test"]}, images)
    digits, labels = (array[start:stop] for array in fetch_mnist(part, data=data))
    linear_N22 = sample_affine(len(digits), seed=seed)
    low_N2, high_N2 = centre_range(digits, linear_N22, SIDE, SIDE)
    bits = philox_bits(len(digits), 2, seed=seed, stream="affine-mnist-v1 centre")
    centre_N2 = low_N2 + (high_N2 - low_N2) * (bits / 2**32)
    image = np.empty((len(digits), 1, SIDE, SIDE), np.uint8)
    warp_affine(digits, linear_N22, centre_N2, image[:, 0])
    return ArrayDataset("affine-mnist-v1", split, image, labels, CLASSES, (centre_N2 / SIDE).astype(np.float32))


def sample_affine(count: int, *, seed: int) -> np.ndarray:
    """(count, 2, 2) scale in x and in y, then shear of x by y, then rotation."""
    bits = philox_bits(count, 4, seed=seed, stream="affine-mnist-v1")
    rotation_N22 = rotation_matrices(integers_between(bits[:, 0], -20 << 16, 20 << 16) / (1 << 16))
    shear = integers_between(bits[:, 1], -2 << 16, 2 << 16) / (10 << 16)
    scale_N2 = integers_between(bits[:, 2:], 8 << 16, 12 << 16) / (10 << 16)
    sheared_N2 = rotation_N22[:, :, 0] * shear[:, None] + rotation_N22[:, :, 1]
    return np.stack([rotation_N22[:, :, 0] * scale_N2[:, :1], sheared_N2 * scale_N2[:, 1:]], axis=2)


def _contents(path: Path, max_bytes: int) -> Iterator[tuple[str, bytes]]:
    """Each .mat file in `path`, in the order of their numbers, with a name to show."""
    remedy = f"put the published file at {path} again, or remove it and run `bcn data fetch affnist`"
    try:
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                names = sorted((name for name in archive.namelist() if name.endswith(".mat")), key=_number)
                for name in names:
                    with archive.open(name) as member:
                        content = member.read(max_bytes + 1)
                    if len(content) > max_bytes:
                        raise zipfile.BadZipFile(f"{name} in it unpacks to more than {max_bytes:,} bytes")
                    yield f"{name} in {path}", content
        else:
            for file in sorted(path.glob("*.mat"), key=lambda file: _number(file.name)) if path.is_dir() else [path]:
                yield str(file), file.read_bytes()
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError) as error:
        raise BcnError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}; {remedy}") from error


def _number(name: str) -> tuple[int, str]:
    stem = Path(name).stem
    return (int(stem) if stem.isdecimal() else 0, stem)


def _parse(shown: str, content: bytes, max_bytes: int) -> tuple[np.ndarray, np.ndarray]:
    """The images (N, 1600), which are the columns of a matrix, pixel row after pixel row; and the classes (N,)."""
    try:
        fields = parse_matlab(content, max_bytes=max_bytes)["affNISTdata"]
        image, label = fields["image"].T, fields["label_int"].reshape(-1)
        known = np.isin(label, range(len(CLASSES))).all()
        if image.dtype != np.uint8 or image.shape != (len(label), SIDE**2) or not known:
            raise ValueError(f"it has images {image.shape[::-1]} of {image.dtype} and {len(label)} labels")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BcnError(f"{shown} is not a file of affNIST: {error}; put the published file there") from error
    return image, label.astype(np.uint8)
