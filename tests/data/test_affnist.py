"""affNIST's published layout, on small files written here after the format's description, and affine-mnist-v1."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
from helpers.matlab import MX, batch, cell, document, numeric, structure, text

from bcn.data.mnist import affnist
from bcn.data.mnist.affnist import fetch_affnist, make_affine_mnist, open_affnist, sample_affine
from bcn.data.mnist.matlab import parse_matlab
from bcn.data.registry import open_dataset
from bcn.errors import BcnError


@pytest.fixture
def batches() -> list[tuple[np.ndarray, np.ndarray]]:
    random = np.random.default_rng(0)
    return [
        (random.integers(0, 256, (4, 40, 40)).astype(np.uint8), random.integers(0, 10, 4).astype(np.uint8))
        for _ in range(11)
    ]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BCN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(affnist.AFFNIST_SPLITS, "test", ("test", 0, 44))
    monkeypatch.setitem(affnist.AFFNIST_SPLITS, "val", ("validation", 0, 4))
    (tmp_path / "affnist").mkdir()
    return tmp_path


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("compress", [True, False])
def test_matlab_values(order: str, compress: bool) -> None:
    arrays = {code: (np.arange(6) * 3 - (0 if code[0] == "u" else 7)).astype(code).reshape(2, 3) for code in MX}
    variables = b"".join(
        document(numeric(array, code, order), order, compress=compress)[128:] for code, array in arrays.items()
    )
    variables += structure({"a": text("on", "", order), "b": cell([], "", order)}, "s", order)
    values = parse_matlab(document(variables, order, compress=False))
    for code, array in arrays.items():
        assert np.array_equal(values[code], array), code
    assert bytes(values["s"]["a"].astype(np.uint8)) == b"on"
    assert values["s"]["b"] == []


def test_damaged_matlab_files_raise_nothing_but_value_errors(batches: list[tuple[np.ndarray, np.ndarray]]) -> None:
    content = batch(*batches[0], compress=False)
    structural = [at for at in range(128, len(content)) if at < 3000 or at > len(content) - 1500]
    random = np.random.default_rng(1)
    refused = 0
    for at, value in zip(random.choice(structural, 400), random.integers(0, 256, 400), strict=True):
        damaged = bytearray(content)
        damaged[at] = value
        try:
            parse_matlab(bytes(damaged))
        except ValueError:
            refused += 1
    assert refused > 50


@pytest.mark.parametrize(("order", "compress"), [("<", True), ("<", False), (">", True)])
def test_one_file(root: Path, batches: list[tuple[np.ndarray, np.ndarray]], order: str, compress: bool) -> None:
    images, labels = batches[0]
    (root / "affnist" / "validation.mat").write_bytes(batch(images, labels, order=order, compress=compress))
    dataset = open_affnist("val", data=root)
    assert np.array_equal(dataset[[0, 1, 2, 3]].image[:, 0].numpy(), images)
    assert dataset[[2]].answer.tolist() == [labels[2]]
    assert dataset.image.dtype == np.uint8


@pytest.mark.parametrize("zipped", [False, True])
def test_batches_in_the_order_of_their_numbers(
    root: Path, batches: list[tuple[np.ndarray, np.ndarray]], zipped: bool
) -> None:
    directory = root / "affnist" / "test_batches"
    directory.mkdir()
    for number, (images, labels) in enumerate(batches, start=1):
        (directory / f"{number}.mat").write_bytes(batch(images, labels))
    if zipped:
        with zipfile.ZipFile(root / "affnist" / "test_batches.zip", "w") as archive:
            for path in directory.iterdir():
                archive.write(path, f"test_batches/{path.name}")
                path.unlink()
        directory.rmdir()
    dataset = open_affnist("test", data=root)
    assert np.array_equal(dataset.image[:, 0], np.concatenate([images for images, _ in batches]))
    assert np.array_equal(dataset.answer, np.concatenate([labels for _, labels in batches]))
    assert np.array_equal(open_affnist("test", data=root, images=5).image, dataset.image[:5])


@pytest.mark.parametrize(
    "how", ["truncated", "not matlab", "hdf5", "other variable", "other size", "too few", "bad zip", "absent"]
)
def test_bad_file_is_one_sentence(root: Path, batches: list[tuple[np.ndarray, np.ndarray]], how: str) -> None:
    images, labels = batches[0]
    path, content = root / "affnist" / "validation.mat", batch(images, labels)
    expected = "is not a file of affNIST"
    if how == "truncated":
        content = content[: len(content) // 2]
    elif how == "not matlab":
        content = b"<html>404</html>" * 50
    elif how == "hdf5":
        content, expected = b"MATLAB 7.3 MAT-file".ljust(512), "7.3"
    elif how == "other variable":
        content = document(numeric(np.eye(3), "x", "<"), "<", compress=True)
    elif how == "other size":
        fields = {
            "image": numeric(images[:, 1:].reshape(4, -1).T, "", "<"),
            "label_int": numeric(labels[None], "", "<"),
        }
        content = document(structure(fields, "affNISTdata", "<"), "<", compress=True)
    elif how == "too few":
        content, expected = batch(images[:3], labels[:3]), "holds 3 images of the 4 wanted"
    elif how == "bad zip":
        path, content, expected = path.with_suffix(".mat.zip"), b"PK\x03\x04 half", "cannot read"
    if how == "absent":
        expected = "bcn data fetch affnist"
    else:
        path.write_bytes(content)
    with pytest.raises(BcnError) as caught:
        open_affnist("val", data=root)
    message = str(caught.value)
    assert expected in message
    assert str(root / "affnist") in message
    assert "\n" not in message


def test_fetch_reads_what_it_downloaded(
    root: Path, batches: list[tuple[np.ndarray, np.ndarray]], monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "server").mkdir()
    monkeypatch.setattr(affnist, "URL", (root / "server").as_uri() + "/")
    with zipfile.ZipFile(root / "server" / "test.mat.zip", "w") as archive:
        archive.writestr("test.mat", batch(*batches[0]))
    path = root / "affnist" / "test.mat.zip"
    assert fetch_affnist(data=root) == [path]
    assert np.array_equal(open_affnist("test", data=root, images=4).image[:, 0], batches[0][0])
    path.unlink()
    (root / "server" / "test.mat.zip").write_bytes(b"<html>log in first</html>")
    with pytest.raises(BcnError, match=rf"cannot read {path}: .*remove it and run `bcn data fetch affnist`"):
        fetch_affnist(data=root)


def test_affine_ranges() -> None:
    """Rotation, shear and scales, recovered from the matrices by a QR decomposition, keep to affNIST's ranges."""
    turns, shears, scales = [], [], []
    for matrix in sample_affine(3000, seed=0):
        turn, upper = np.linalg.qr(matrix)
        signs = np.sign(np.diag(upper))
        turn, upper = turn * signs, upper * signs[:, None]
        turns.append(np.degrees(np.arctan2(turn[0, 1], turn[0, 0])))
        scales.append(np.diag(upper))
        shears.append(upper[0, 1] / upper[1, 1])
    for values, low, high in ((turns, -20, 20), (shears, -0.2, 0.2), (scales, 0.8, 1.2)):
        margin = (high - low) / 200
        assert low - 1e-6 <= np.min(values) < low + margin
        assert high - margin < np.max(values) <= high + 1e-6
        assert abs(np.mean(values) - (low + high) / 2) < margin * 4


@pytest.mark.usefixtures("mnist_sample")
def test_real_affine_mnist() -> None:
    dataset = make_affine_mnist("test", images=1000)
    assert dataset.image.shape == (1000, 1, 40, 40)
    assert dataset.checksum() == "5e03d1926c83e94d3b94203f355caedd7d56665abfdca1ba51f0f53fc97f1a71"
    assert (
        open_dataset("affine-mnist-v1", "test", images=10).checksum() == make_affine_mnist("test", images=10).checksum()
    )
    with pytest.raises(BcnError, match="no split 'train'"):
        make_affine_mnist("train")


@pytest.mark.usefixtures("mnist_sample")
def test_real_affine_digits_are_whole() -> None:
    """On a canvas with a margin, no ink lies outside of the 40x40 pixels."""
    from bcn.data.mnist.mnist import fetch_mnist
    from bcn.data.mnist.resample import warp_affine

    digits = fetch_mnist("test")[0][:500]
    dataset = make_affine_mnist("test", images=500)
    assert dataset.centre is not None
    wide = np.empty((500, 60, 60), np.uint8)
    warp_affine(digits, sample_affine(500, seed=0), dataset.centre.astype(float) * 40 + 10, wide)
    assert np.abs(wide[:, 10:50, 10:50].astype(int) - dataset.image[:, 0]).max() <= 1  # the label is a float32
    wide[:, 10:50, 10:50] = 0
    assert wide.max() <= 1
