"""Files that would crash a reader, fill the memory, reach outside their folder or steer the terminal."""

import json
import shutil
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.annotated_clevr import annotated_clevr
from helpers.clevr_folder import clevr_folder
from helpers.matlab import batch, cell, document, element, head, numeric
from helpers.mnist_sample import use_mnist_sample

from bcn.data.cache import open_cache
from bcn.data.clevr_like.program import run
from bcn.data.clevr_like.questions import make_questions
from bcn.data.clevr_like.scene import make_scene
from bcn.data.clevr_like.scene_files import read_scenes
from bcn.data.clevr_like.supervision import open_objects, open_referents
from bcn.data.clevr_like.transfer import open_transfer
from bcn.data.mnist import affnist, mnist
from bcn.data.mnist.affnist import fetch_affnist, open_affnist
from bcn.data.mnist.matlab import parse_matlab
from bcn.data.mnist.mnist import fetch_mnist
from bcn.data.vqa.clevr import Program
from bcn.data.vqa.embeddings import load_glove
from bcn.data.vqa.load import open_questions
from bcn.errors import BcnError


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return annotated_clevr(tmp_path_factory.mktemp("made"))


@pytest.fixture
def annotated(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BCN_CACHE", str(tmp_path / "cache"))
    return Path(shutil.copytree(made, tmp_path / "clevr-like-v1"))


@pytest.fixture
def clevr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BCN_CACHE", str(tmp_path / "cache"))
    return clevr_folder(tmp_path)


def edit(path: Path, change: Callable[[Any], object]) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"image_filename": "/etc/passwd"}, '"image_filename" is "/etc/passwd", and not a path within the folder'),
        ({"image_filename": "../../../x.png"}, '"image_filename" is "../../../x.png", and not a path'),
        ({"image_filename": ""}, "not a path within"),
        ({"question_index": 2**63}, '"question_index" is 9223372036854775808: accepted are 0 to'),
        ({"question_index": -1}, '"question_index" is -1: accepted are 0 to'),
        ({"answer": float("inf")}, '"answer" is inf, which is no number'),
        ({"answer": "\x1b]0;owned\x07"}, r"has the control character '\\x1b'"),
    ],
)
def test_entries_of_clevr(clevr: Path, change: dict[str, Any], problem: str) -> None:
    edit(clevr / "questions" / "CLEVR_val_questions.json", lambda content: content["questions"][3].update(change))
    with pytest.raises(BcnError, match=rf"question 3: .*{problem}"):
        open_questions(clevr, "val", size=16)


def test_numbers_that_json_makes_infinite_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BCN_CACHE", str(tmp_path / "cache"))
    (tmp_path / "questions.jsonl").write_text('{"image": "a.png", "question": "why?", "answer": 1e999}\n')
    with pytest.raises(BcnError, match=r'line 1: "answer" is inf, which is no number'):
        open_questions(tmp_path, "train")


@pytest.mark.parametrize(
    "change",
    [
        lambda scene: scene["objects"][0].update(pixel_coords=["left", 3, 4]),
        lambda scene: scene["objects"][0].update(pixel_coords=[float("inf"), 3, 4]),
        lambda scene: scene["objects"][0].update(pixel_coords=[10**400, 3, 4]),
        lambda scene: scene["objects"][0].update(pixel_coords="abc"),
        lambda scene: scene["objects"][0].update({"3d_coords": [None, 0, 0]}),
        lambda scene: scene["objects"][0].update(color=["red"]),
        lambda scene: scene.update(objects=[]),
        lambda scene: scene.update(objects={}),
        lambda scene: scene.update(objects=scene["objects"] * 9),
        lambda scene: scene["relationships"]["left"].__setitem__(0, [10**9]),
        lambda scene: scene["relationships"]["left"].__setitem__(0, [-1]),
        lambda scene: scene.update(relationships=None),
        lambda scene: scene.update(image_index=2**63),
        lambda scene: scene.update(image_filename="../../x.png"),
        lambda scene: scene.update(image_filename="/x.png"),
    ],
)
def test_scenes(annotated: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = annotated / "scenes" / "CLEVR_train_scenes.json"
    assert len(list(read_scenes(path))) == 12
    edit(path, lambda content: change(content["scenes"][3]))
    with pytest.raises(BcnError, match="scene 3: it does not have an image, 1 to 16 objects"):
        list(read_scenes(path))


def test_an_object_beside_the_image_is_at_its_border(annotated: Path) -> None:
    outside = [-3000.0, 9e9, 1.0]
    edit(
        annotated / "scenes" / "CLEVR_train_scenes.json",
        lambda content: content["scenes"][0]["objects"][0].update(pixel_coords=outside),
    )
    dataset = open_objects(annotated, open_questions(annotated, "train", size=16), (8, 8))
    assert 0 <= dataset.centre.min() <= dataset.centre.max() < 1


@pytest.mark.parametrize(
    "node",
    [
        {"function": "count", "inputs": [-1]},  # which would look for its referents in a circle, for ever
        {"function": "count", "inputs": [99]},
        {"function": "union", "inputs": [0, 2]},
        {"function": "relate", "inputs": [0], "value_inputs": ["beyond"]},
        {"function": "count", "inputs": ["0"]},
        {"function": "count", "inputs": 0},
        ["count"],
    ],
)
def test_programs(annotated: Path, node: Any) -> None:
    train = open_questions(annotated, "train", size=16)
    path = annotated / "questions" / "CLEVR_train_questions.json"
    program = [{"function": "scene", "inputs": []}, node, {"function": "count", "inputs": [1]}]
    edit(path, lambda content: content["questions"][5].update(program=program))
    with pytest.raises(BcnError, match="question 5: its program does not fit its scene"):
        open_referents(annotated, train)


def test_a_program_has_no_circles() -> None:
    program: Program = [{"function": "scene"}, {"function": "unique", "inputs": [-1]}]
    with pytest.raises(BcnError, match=r"node 1 of a program has the inputs \[-1\]: accepted are earlier nodes"):
        run(program, make_scene(0))


def test_kept_questions_about_original_images_are_made_again(annotated: Path, tmp_path: Path) -> None:
    edit(annotated / "scenes" / "CLEVR_train_scenes.json", lambda content: content.update(info={}))

    def ask() -> list[Any]:
        dataset = open_transfer(words=("red",), answers=("yes", "no"), data=annotated, split="train", size=16)
        return [len(dataset), dataset.checksum()]

    asked = ask()
    (kept,) = (tmp_path / "cache").rglob("CLEVR_train_questions.json")
    kept.write_bytes(b"\xff" + kept.read_bytes())
    assert ask() == asked


@pytest.mark.parametrize("objects", [0, 21])
def test_questions_about_scenes_that_are_not_clevr_s(objects: int) -> None:
    scene = make_scene(0)
    scene["objects"] = (scene["objects"] * 9)[:objects]
    with pytest.raises(BcnError, match=f"has {objects} objects: accepted are 1 to 20"):
        make_questions(scene)


@pytest.mark.parametrize("numbers", ["inf " * 49 + "1", "nan " * 49 + "1", "0.5", "1e999 " * 49 + "1", "1 " * 51 + "1"])
def test_embeddings_are_fifty_finite_numbers(tmp_path: Path, numbers: str) -> None:
    path = tmp_path / "glove.6B.50d.txt"
    path.write_text(f"blue {' '.join(['0.25'] * 50)}\nred {numbers}\n")
    assert load_glove(["blue"], data=tmp_path).tolist() == [[0.25] * 50]
    with pytest.raises(BcnError, match="at 'red': accepted are lines of a word and 50 numbers"):
        load_glove(["red"], data=tmp_path)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda entries: entries["a.npy"].update(bytes=None), "does not list files"),
        (lambda entries: entries["a.npy"].update(sha256=3), "does not list files"),
        (lambda entries: entries.update({"../../x.npy": entries["a.npy"]}), "does not list files"),
        (lambda entries: entries.update({"/x.npy": entries["a.npy"]}), "does not list files"),
        (lambda entries: entries.update({"manifest.json": entries["a.npy"]}), "does not list files"),
        (lambda entries: entries["a.npy"].update(blocks={"bytes": 0, "sha256": []}), "does not list files"),
        (lambda entries: entries["a.npy"].update(blocks=None), "does not list files"),
        (lambda entries: entries.pop("a.npy"), "has no a.npy"),
        (lambda entries: entries.clear(), "does not list files"),
    ],
)
def test_manifests_of_caches(
    tmp_path: Path, change: Callable[[Any], object], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BCN_CACHE", str(tmp_path))
    np.save(tmp_path / "x.npy", np.zeros(3))
    (tmp_path / "set").mkdir()

    def make(directory: Path) -> None:
        for name in ("a.npy", "b.npy"):
            np.save(directory / name, np.arange(3))

    def open_a() -> np.ndarray:
        return open_cache("set", "part", make)["a"]

    assert open_a().tolist() == [0, 1, 2]
    edit(tmp_path / "set" / "part" / "manifest.json", change)
    with pytest.raises(BcnError, match=rf"{problem}: remove .*part, and it is made again"):
        open_a()


def test_a_bomb_in_a_matlab_file_is_not_unpacked() -> None:
    zeros = numeric(np.zeros((1, 1 << 24), np.uint8), "zeros", "<")
    packed = document(zeros, "<", compress=True)
    assert len(packed) < 1 << 17
    tracemalloc.start()
    with pytest.raises(ValueError, match="unpacks to more than the 1,048,576 bytes"):
        parse_matlab(packed, max_bytes=1 << 20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 23
    two = packed[:128] + 2 * packed[128:]
    with pytest.raises(ValueError, match="unpacks to more than"):  # each fits, both do not
        parse_matlab(two, max_bytes=(1 << 24) + (1 << 20))
    with pytest.raises(ValueError, match="unpacks to more than"):  # nothing is left for the second
        parse_matlab(two, max_bytes=len(zeros))
    assert parse_matlab(packed, max_bytes=len(zeros)).keys() == {"zeros"}
    assert parse_matlab(packed)["zeros"].shape == (1, 1 << 24)


def test_matlab_files_that_would_recurse_or_never_end() -> None:
    nested = numeric(np.zeros((1, 1)), "", "<")
    for _ in range(1200):
        nested = cell([nested], "", "<")
    with pytest.raises(ValueError, match="more than 16 cells or structures within each other"):
        parse_matlab(document(nested, "<", compress=False))
    packed = b"\0" * 8
    for _ in range(1200):
        content = zlib.compress(packed, 0)
        packed = struct.pack("<II", 15, len(content)) + content
    assert parse_matlab(document(packed, "<", compress=False)) == {}
    body = head(2, (1 << 30, 1), "empty", "<") + element(5, struct.pack("<i", 8), "<") + element(1, b"", "<")
    with pytest.raises(ValueError, match="structures without fields"):
        parse_matlab(document(element(14, body, "<"), "<", compress=False))


def test_a_bomb_in_an_archive_of_affnist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BCN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(affnist.AFFNIST_SPLITS, "val", ("validation", 0, 4))
    (tmp_path / "affnist").mkdir()
    with zipfile.ZipFile(tmp_path / "affnist" / "validation.mat.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("validation.mat", bytes(1 << 24))
    with pytest.raises(BcnError, match=r"validation.mat in it unpacks to more than 1,081,344 bytes"):
        open_affnist("val", data=tmp_path)


def test_affnist_is_compared_with_what_was_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BCN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(affnist.AFFNIST_SPLITS, "test", ("test", 0, 4))
    assert affnist.URL.startswith("https://")
    (tmp_path / "server").mkdir()
    monkeypatch.setattr(affnist, "URL", (tmp_path / "server").as_uri() + "/")
    images, labels = np.zeros((4, 40, 40), np.uint8), np.arange(4, dtype=np.uint8)
    for place, shade in (("server", 0), ("affnist", 1)):
        (tmp_path / place).mkdir(exist_ok=True)
        with zipfile.ZipFile(tmp_path / place / "test.mat.zip", "w") as archive:
            archive.writestr("test.mat", batch(images + shade, labels))
    other = tmp_path / "affnist" / "test.mat.zip"
    changed = other.read_bytes()
    other.unlink()
    (path,) = fetch_affnist(data=tmp_path)
    assert path.with_name("test.mat.zip.sha256").read_text().endswith("  test.mat.zip\n")
    assert len(open_affnist("test", data=tmp_path)) == 4
    path.write_bytes(changed)
    for use in (open_affnist, lambda _, data: fetch_affnist(data)):
        with pytest.raises(BcnError, match=r"does not have the SHA-256 in test.mat.zip.sha256"):
            use("test", data=tmp_path)


def test_a_bomb_in_the_place_of_mnist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_mnist_sample(monkeypatch, tmp_path / "cache")
    name = mnist.FILES["test"][0].name
    monkeypatch.setitem(mnist.FILES, "train", mnist.FILES["test"])
    packer = zlib.compressobj(wbits=31)
    bomb = packer.compress(bytes(1 << 24)) + packer.flush()
    (tmp_path / f"{name}.gz").write_bytes(bomb)
    tracemalloc.start()
    with pytest.raises(BcnError, match="bytes, MNIST's"):
        fetch_mnist("test", data=tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 22
