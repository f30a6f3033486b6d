"""`bcn data`, run as its users run it, and what the registry promises of every data set."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.command import exit_code, invoke_bcn, run_bcn
from helpers.small_weights import scene_run
from PIL import Image

from bcn.data.check import CHECKSUMS, check_split
from bcn.data.contact_sheet import caption
from bcn.data.registry import DATASETS, open_dataset
from bcn.data.sort_of_clevr import make_sort_of_clevr
from bcn.errors import BcnError

OPENED = [
    *("sort-of-clevr-v1", "sort-of-clevr-v1-3-objects", "sort-of-clevr-stream", "sort-of-clevr-legacy"),
    *(
        "sort-of-clevr-v2",
        "sort-of-clevr-v2-stream-varied",
        "sort-of-clevr-v2-12-objects-states",
        "sort-of-clevr-v2-noise",
    ),
]
REAL = ["mnist", "scaled-mnist-v1", "more-scaled-mnist-v1", "more-scaled-mnist-10-v1", "more-scaled-mnist-45-v1",
        "affine-mnist-v1"]  # fmt: skip


def run(*arguments: str) -> str:
    return invoke_bcn("data", *arguments).output


@pytest.fixture
def empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Nothing is anywhere."""
    monkeypatch.setenv("BCN_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("BCN_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.parametrize("name", [*OPENED, *REAL])
@pytest.mark.usefixtures("mnist_sample")
def test_every_data_set_keeps_the_protocol(name: str) -> None:
    dataset = open_dataset(name, "test", images=12)
    batch = dataset[np.array([5, 0, 5])]
    assert len(dataset) == 12
    assert batch.image.dtype == torch.uint8
    assert batch.image.is_contiguous()
    assert torch.equal(batch.image[0], batch.image[2])
    assert batch.answer.dtype == torch.int64
    assert int(batch.answer.max()) < len(dataset.answers)
    if dataset.kinds:
        assert batch.question is not None
        assert batch.kind is not None
        assert batch.question.shape[:2] == batch.answer.shape == batch.kind.shape
    else:
        assert batch.answer.shape == (3,)
    if batch.centre is not None:
        assert batch.centre.shape == (3, 2)
        assert 0 < batch.centre.min() < batch.centre.max() < 1
    assert dataset.preprocessing(batch.image).dtype == torch.float32
    assert sorted(dataset.order(3, seed=1).tolist()) == list(range(12))
    assert not np.array_equal(dataset.order(3, seed=1), dataset.order(4, seed=1))
    assert dataset.augment(batch, torch.Generator()).image.shape == batch.image.shape
    assert dataset.checksum() == open_dataset(name, "test", images=12).checksum()
    assert dataset.checksum() != open_dataset(name, "test", images=11).checksum()


def test_names() -> None:
    for name, splits in CHECKSUMS.items():
        assert set(splits) <= set(DATASETS[name].splits)
    page = (Path(__file__).parents[2] / "docs" / "reference" / "data-sets.md").read_text()
    assert [name for name in DATASETS if f"`{name}`" not in page] == []
    with pytest.raises(BcnError, match="unknown data set 'scaled-mnist': did you mean 'scaled-mnist-v1'"):
        open_dataset("scaled-mnist", "test")


def test_list_says_what_is_missing(empty: Path) -> None:
    rows = {row["name"]: row for row in json.loads(run("list", "--json"))}
    assert list(rows) == list(DATASETS)
    assert rows["sort-of-clevr-v1"]["missing"] is None
    assert rows["scaled-mnist-v1"]["missing"] == "not made yet: `bcn data make scaled-mnist-v1`"
    assert rows["affine-mnist-v1"]["missing"] == rows["mnist"]["missing"] == "not here: `bcn data fetch mnist`"
    assert rows["stl10"]["missing"] == "not here: `bcn data fetch stl10`"
    (empty / "data" / "stl10_binary").mkdir(parents=True)
    assert f"{empty}/data/stl10_binary" in run("list")
    assert json.loads(run("list", "--json", "--data", str(empty)))[-1]["places"] == []


def test_make_writes_arrays(tmp_path: Path) -> None:
    said = run(
        "make", "sort-of-clevr-v1", "--split", "val", "--images", "3", "--questions", "all", "--out", str(tmp_path)
    )
    dataset = open_dataset("sort-of-clevr-v1", "val", images=3, questions="all")
    assert dataset.checksum() in said
    with np.load(tmp_path / "sort-of-clevr-v1-val.npz") as arrays:
        batch = dataset[[0, 1, 2]]
        assert np.array_equal(arrays["image"], batch.image)
        assert np.array_equal(arrays["answer"], batch.answer)
        assert arrays["answer"].shape == (3, 36)
        assert arrays["answers"].tolist() == list(dataset.answers)
        assert arrays["kinds"].tolist() == list(dataset.kinds)


@pytest.mark.usefixtures("mnist_sample")
def test_make_mends_a_damaged_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from bcn.data.mnist import mnist

    digits, labels = mnist.fetch_mnist("test")
    monkeypatch.setenv("BCN_CACHE", str(tmp_path))
    monkeypatch.setattr("bcn.data.mnist.scaled.fetch_mnist", lambda part, data: (digits[:20], labels[:20]))
    monkeypatch.setitem(mnist.SPLITS, "test", ("test", 0, 20))
    first = run("make", "scaled-mnist-v1", "--split", "test")
    path = tmp_path / "scaled-mnist-v1" / "test-seed0" / "image.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(BcnError, match="scaled-mnist-v1: the check failed"):
        run("check", "scaled-mnist-v1")
    monkeypatch.setitem(CHECKSUMS, "scaled-mnist-v1", {"train+val": "unknown", "test": first.split()[-1]})
    assert "made again" in run("make", "scaled-mnist-v1", "--split", "test")
    assert run("make", "scaled-mnist-v1", "--split", "test") == first
    assert run("check", "scaled-mnist-v1") == first  # the training digits were not made, so they are not checked


def test_generated_sets_hold_their_checksums() -> None:
    for name, split in (("sort-of-clevr-v1", "val"), ("sort-of-clevr-legacy", "test")):
        assert check_split(name, split).endswith(f"sha256 {CHECKSUMS[name][split]}")


def test_a_changed_generator_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CHECKSUMS, "sort-of-clevr-legacy", {"test": "0" * 64})
    with pytest.raises(BcnError, match="sort-of-clevr-legacy: the check failed"):
        run("check", "sort-of-clevr-legacy")


@pytest.mark.parametrize("name", DATASETS)
def test_a_place_that_is_not_there_is_an_error(name: str, tmp_path: Path) -> None:
    missing, split = tmp_path / "missing", DATASETS[name].splits[-1]
    with pytest.raises(BcnError, match=f"{missing} is not a directory"):
        open_dataset(name, split, data=missing)
    with pytest.raises(BcnError, match=f"{missing} is not a directory"):
        run("show", name, "--split", split, "--data", str(missing), "--out", str(tmp_path / "sheet.png"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("objects", [2, 5])
def test_fewer_objects_by_name(objects: int, tmp_path: Path) -> None:
    name = f"sort-of-clevr-v1-{objects}-objects"
    same = make_sort_of_clevr("sort-of-clevr-v1", "val", images=9, objects=objects)
    assert same.name == name
    assert f"{name} val: 9 images, sha256 {same.checksum()}" in run("make", name, "--split", "val", "--images", "9")
    assert run("check", name).count("sha256") == 3
    found = json.loads(run_bcn("eval", scene_run(), "--on", name, "--images", 7, "--json"))
    assert found["data"] == name
    asked = min(10, 3 * objects)
    assert {kind: found["metrics"][kind]["total"] for kind in ("non_relational", "relational")} == {
        "non_relational": 7 * asked,
        "relational": 7 * asked,
    }


@pytest.mark.parametrize("name", ["clevr-like-v1", "clevr-like-v1-224"])
def test_making_a_set_of_renderings_says_how(empty: Path, name: str) -> None:
    for more in ([], ["--split", "train"]):
        with pytest.raises(BcnError, match=f"{name} is not in .*: not made yet: `bcn clevr make"):
            run("make", name, *more)


def test_check_looks_through_images_and_questions(empty: Path) -> None:
    directory = empty / "data"
    directory.mkdir()
    line = {"image": "train.png", "question": "Is it dark?", "answer": "yes", "split": "train"}
    lines = [line, line | {"question": "Dark, is it?"}, line | {"image": "val.png", "split": "val"}]
    (directory / "questions.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    for name, colour in (("train", "navy"), ("val", "black")):
        picture = Image.new("RGB", (8, 8), colour)
        picture.putpixel((1, 1), (255, 255, 255))
        picture.save(directory / f"{name}.png")
    said = run("check", "own").splitlines()
    assert said[0] == "own: train: 1 images, 2 questions (other 2)"
    assert said[-1] == "own: no problems found"
    (directory / "val.png").unlink()
    with pytest.raises(BcnError, match="own: the check failed"):
        run("check", "own")


def test_show_says_questions_in_words(empty: Path) -> None:
    directory = empty / "mine"
    directory.mkdir()
    said = [("a", "Which colour is it?", "red"), ("a", "Is it red?", "yes"), ("b", "Is it red?", "no")]
    for name, colour in (("a", "red"), ("b", "blue")):
        Image.new("RGB", (8, 8), colour).save(directory / f"{name}.png")
    lines = [{"image": f"{i}.png", "question": q, "answer": a, "split": "train"} for i, q, a in said]
    (directory / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    dataset = open_dataset("own", "train", data=directory)
    batch = dataset[[0, 1]]
    assert caption(dataset, batch, 0, 80) == ["which colour is it? red", "is it red? yes"]
    assert caption(dataset, batch, 1, 9) == ["is it", "   red?", "   no"]
    run("show", "own", "--split", "train", "--data", str(directory), "--out", str(empty / "sheet.png"))
    assert Image.open(empty / "sheet.png").size[0] > 2 * 160


@pytest.mark.data("mnist")
def test_published_sets_hold_their_checksums() -> None:
    said = run("check", "mnist")
    assert f"mnist test: 10,000 images, sha256 {CHECKSUMS['mnist']['test']}" in said


def test_check_passes_over_what_is_not_here_unless_it_is_named(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bcn.data.registry.DATASETS", {"stl10": DATASETS["stl10"], "mnist": DATASETS["mnist"]})
    assert "stl10: not here" in run("check")
    with pytest.raises(BcnError, match="stl10: the check failed"):
        run("check", "stl10")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["make", "mnist"], "run `bcn data fetch mnist`"),
        (["fetch", "scaled-mnist-v1"], "run `bcn data make scaled-mnist-v1`"),
        (["show", "stl11"], "did you mean 'stl10'"),
        (["show", "sort-of-clevr-v1", "--split", "dev"], "split"),
        (["show", "sort-of-clevr-v1", "--out", "sheet.jpg"], "ends in .png"),
        (["make", "sort-of-clevr-v1", "--questions", "some"], "questions"),
        (["check", "nothing"], r"unknown data set \(and there is no such directory\) 'nothing'"),
    ],
)
def test_bad_commands_are_one_sentence(empty: Path, arguments: list[str], message: str) -> None:
    with pytest.raises(BcnError, match=message):
        run(*arguments)


def test_exit_code_is_two(empty: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("data", "show", "stl10") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("bcn: STL-10 is not in")
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", ["sort-of-clevr-v1", "scaled-mnist-v1"])
@pytest.mark.usefixtures("mnist_sample")
def test_show_holds_the_images(tmp_path: Path, name: str) -> None:
    path = tmp_path / "sheet.png"
    assert run("show", name, "--images", "3", "--out", str(path)) == f"{path}\n"
    sheet = np.asarray(Image.open(path))
    image = open_dataset(name, "test", images=3)[[0]].image[0].permute(1, 2, 0).numpy()
    scale = -(-160 // image.shape[1])
    shown = sheet[8 : 8 + image.shape[0] * scale : scale, 8 : 8 + image.shape[1] * scale : scale]
    different = (shown != image).any(axis=2)
    assert different.mean() < 0.002  # nothing but the cross on the digit's centre
    below = sheet[8 + image.shape[0] * scale + 2 :]
    assert (below < 128).any()  # the label
