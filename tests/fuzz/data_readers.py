"""Readers of data sets: images, questions, scenes, word embeddings, MNIST, affNIST and STL-10."""

import gzip
import hashlib
import json
import os
import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from helpers.matlab import batch
from PIL import Image

from bcn.data import stl10
from bcn.data.clevr_like.make import join_parts
from bcn.data.clevr_like.questions import make_questions
from bcn.data.clevr_like.scene import make_scene
from bcn.data.clevr_like.scene_files import read_drawable_scenes, read_scenes
from bcn.data.clevr_like.spec import SplitSpec
from bcn.data.clevr_like.supervision import _referent_bits, open_objects
from bcn.data.images import read_image
from bcn.data.mnist import affnist, mnist
from bcn.data.mnist.affnist import open_affnist
from bcn.data.mnist.matlab import parse_matlab
from bcn.data.mnist.mnist import IdxFile, fetch_mnist
from bcn.data.stl10 import open_stl10
from bcn.data.vqa import jsonl
from bcn.data.vqa.embeddings import load_glove
from bcn.data.vqa.json_stream import stream_list
from bcn.data.vqa.layouts import list_splits, read_questions
from bcn.data.vqa.load import open_questions
from fuzz.harness import Reader

SCENES = [make_scene(index) for index in range(3)]
PIXELS = np.random.default_rng(0).integers(0, 256, (12, 17, 3), dtype=np.uint8)
DIGITS = np.random.default_rng(0).integers(0, 256, (4, 40, 40), dtype=np.uint8)


def _plain(value: Any) -> Any:
    """What can be compared, where arrays are in it."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return (str(value.dtype), value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value


def _image_reader(form: str) -> Reader:
    name = f"image.{form.lower()}"
    return Reader(
        name,
        lambda folder: Image.fromarray(PIXELS).save(folder / name, form),
        lambda folder: _plain(np.asarray(read_image(folder / name))),
    )


def _write_own(folder: Path) -> None:
    lines = [
        {"image": f"{index}.png", "question": f"is it {word}?", "answer": "yes", "split": split, "kind": "is"}
        for index, word in enumerate(("red", "blue", "large"))
        for split in ("train", "val")
    ]
    (folder / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def _read_own(folder: Path) -> Any:
    jsonl._splits.cache_clear()
    return {split: list(read_questions(folder, split)) for split in list_splits(folder)}


def _write_clevr(folder: Path) -> None:
    questions = [question for scene in SCENES for question in make_questions(scene, count=4)]
    for key, entries in (("scenes", SCENES), ("questions", questions)):
        (folder / key).mkdir()
        (folder / key / f"CLEVR_train_{key}.json").write_text(json.dumps({"info": {}, key: entries}))
    (folder / "images" / "train").mkdir(parents=True)
    for scene in SCENES:
        Image.fromarray(PIXELS).save(folder / "images" / "train" / scene["image_filename"])


def _read_programs(folder: Path) -> Any:
    path = folder / "questions" / "CLEVR_train_questions.json"
    questions = enumerate(stream_list(path, "questions"))
    return [_referent_bits(path, place, entry, SCENES[0], 3) for place, entry in questions]


def _write_programs(folder: Path) -> None:
    (folder / "questions").mkdir()
    questions = make_questions(SCENES[0], count=8)
    (folder / "questions" / "CLEVR_train_questions.json").write_text(json.dumps({"questions": questions}))


def _read_supervision(folder: Path) -> Any:
    dataset = open_objects(folder, open_questions(folder, "train", size=8), (4, 4))
    found = dataset[np.arange(len(dataset))]
    return [_plain(part.numpy()) for part in (found.question, found.answer) if part is not None]


def _write_parts(folder: Path) -> None:
    spec = SplitSpec("train", 0, 16)
    (folder / "parts").mkdir()
    (folder / "parts" / "train.json").write_text(json.dumps(asdict(spec)))
    lines: list[Any] = [{"info": asdict(spec), "images": len(SCENES)}]
    lines += [{"scene": scene, "questions": make_questions(scene, count=2)} for scene in SCENES]
    (folder / "parts" / "train-000000.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "images" / "train").mkdir(parents=True)
    for index in range(len(SCENES)):
        (folder / "images" / "train" / f"CLEVR_train_{index:06d}.png").touch()


def _read_parts(folder: Path) -> Any:
    for key in ("scenes", "questions"):
        shutil.rmtree(folder / key, ignore_errors=True)
    return join_parts(folder), [path.read_text() for path in sorted(folder.glob("*/CLEVR_*.json"))]


def _write_glove(folder: Path) -> None:
    random = np.random.default_rng(0)
    lines = [f"{word} {' '.join(map(str, random.normal(size=50).round(4)))}\n" for word in ("red", "cube", "the", ".")]
    (folder / "glove.6B.50d.txt").write_text("".join(lines))


def _idx(array: np.ndarray) -> bytes:
    return b"\0\0\x08" + bytes([array.ndim]) + np.array(array.shape, ">i4").tobytes() + array.tobytes()


IDX = {"images": _idx(DIGITS[:, :28, :28].copy()), "labels": _idx(np.arange(4, dtype=np.uint8))}
IDX_FILES = tuple(
    IdxFile(name, shape, "", hashlib.sha256(IDX[name]).hexdigest())
    for name, shape in (("images", (4, 28, 28)), ("labels", (4,)))
)


def _write_mnist(folder: Path) -> None:
    (folder / "images.gz").write_bytes(gzip.compress(IDX["images"]))
    (folder / "labels").write_bytes(IDX["labels"])


def _read_mnist(folder: Path) -> Any:
    with (
        patch.dict(mnist.FILES, {"train": IDX_FILES, "test": IDX_FILES}),
        patch.object(mnist, "MIRRORS", ("file:///nowhere/",)),
    ):
        return [_plain(array) for array in fetch_mnist("test", data=folder)]


def _write_stl10(folder: Path) -> None:
    directory = folder / "stl10_binary"
    directory.mkdir()
    random = np.random.default_rng(0)
    for part in ("train", "test"):
        (directory / f"{part}_X.bin").write_bytes(random.integers(0, 50, (2, 3 * 96 * 96), dtype=np.uint8).tobytes())
        (directory / f"{part}_y.bin").write_bytes(b"\x01\x0a")
    (directory / "fold_indices.txt").write_text("0 1 \n" * 10)
    stl10_md5.update({path.name: hashlib.md5(path.read_bytes()).hexdigest() for path in directory.iterdir()})


stl10_md5: dict[str, str] = {}
"""of the files that were written"""


@contextmanager
def _small_stl10() -> Iterator[None]:
    splits = {"test": ("test", 0, 2), "train": ("train", 0, 2), "fold3": ("train", 0, 2)}
    with patch.dict(stl10.MD5, stl10_md5), patch.dict(stl10.SPLITS, splits):
        yield


def _read_stl10(folder: Path) -> Any:
    with _small_stl10():
        return [open_stl10(split, data=folder).checksum() for split in ("test", "train", "fold3")]


def _write_archive(folder: Path) -> None:
    _write_stl10(folder)
    with tarfile.open(folder / "stl10_binary.tar.gz", "w:gz") as tar:
        tar.add(folder / "stl10_binary", "stl10_binary")
    shutil.rmtree(folder / "stl10_binary")


def _read_archive(folder: Path) -> Any:
    shutil.rmtree(Path(os.environ["BCN_CACHE"]) / "stl10_binary", ignore_errors=True)
    return _read_stl10(folder)


def _write_affnist(folder: Path) -> None:
    (folder / "affnist").mkdir()
    path = folder / "affnist" / "test.mat.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("test.mat", batch(DIGITS, np.arange(4)))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    path.with_name(path.name + ".sha256").write_text(f"{digest}  {path.name}\n")


def _write_batches(folder: Path) -> None:
    (folder / "affnist" / "test_batches").mkdir(parents=True)
    for number in (1, 2):
        content = batch(DIGITS[:2], np.arange(2), compress=number == 1)
        (folder / "affnist" / "test_batches" / f"{number}.mat").write_bytes(content)


def _read_affnist(folder: Path) -> Any:
    with patch.dict(affnist.AFFNIST_SPLITS, {"test": ("test", 0, 4)}):
        return open_affnist("test", data=folder).checksum()


def _matlab_reader(name: str, *, compress: bool) -> Reader:
    def write(folder: Path) -> None:
        (folder / "a.mat").write_bytes(batch(DIGITS[:1], np.arange(1), compress=compress))

    return Reader(
        name,
        write,
        lambda folder: _plain(parse_matlab((folder / "a.mat").read_bytes())),
        refusals=(ValueError, OSError),
    )


READERS = (
    *map(_image_reader, ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")),
    Reader("questions.jsonl", _write_own, _read_own),
    Reader(
        "CLEVR's questions",
        _write_clevr,
        lambda folder: list(read_questions(folder, "train")),
        files="*_questions.json",
    ),
    Reader(
        "CLEVR's scenes",
        _write_clevr,
        lambda folder: list(read_scenes(folder / "scenes" / "CLEVR_train_scenes.json")),
        files="*_scenes.json",
    ),
    Reader(
        "scenes to render",
        _write_clevr,
        lambda folder: list(read_drawable_scenes(folder / "scenes" / "CLEVR_train_scenes.json")),
        files="*_scenes.json",
    ),
    Reader("object supervision", _write_clevr, _read_supervision, files="*_scenes.json"),
    Reader("programs", _write_programs, _read_programs),
    Reader("parts of clevr-like-v1", _write_parts, _read_parts, files="train*.json*"),
    Reader("GloVe", _write_glove, lambda folder: _plain(load_glove(("red", "cube", "the", "."), data=folder))),
    Reader("MNIST", _write_mnist, _read_mnist, checked=True),
    Reader("STL-10", _write_stl10, _read_stl10, checked=True),
    Reader("STL-10's archive", _write_archive, _read_archive, checked=True),
    Reader("affNIST", _write_affnist, _read_affnist, checked=True),
    Reader("affNIST's batches", _write_batches, _read_affnist),
    _matlab_reader("MATLAB", compress=False),
    _matlab_reader("MATLAB, packed", compress=True),
)
