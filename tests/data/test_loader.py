"""Data sets in torch's DataLoader, and as files for other tools, read back by those tools' own readers."""

import io
import json
import tarfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.small_disk import mount_disk
from helpers.torchvision import import_torchvision
from PIL import Image
from torch.utils.data import ConcatDataset, DataLoader, Subset

from bcn.data.arrays import ArrayDataset
from bcn.data.dataset import IGNORE_INDEX, Dataset
from bcn.data.export import export_dataset
from bcn.data.loader import TransformedDataset, collate
from bcn.data.registry import open_dataset
from bcn.data.sort_of_clevr import make_sort_of_clevr
from bcn.errors import BcnError


@pytest.fixture(scope="module")
def scenes() -> Dataset:
    return make_sort_of_clevr("sort-of-clevr-v1", "val", images=7)


@pytest.fixture(scope="module")
def classes() -> Dataset:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 1, 8, 9), np.uint8)
    centre = np.linspace(0, 1, 10, dtype=np.float32).reshape(5, 2)
    return ArrayDataset("noise-v1", "test", pixels, np.array([2, 0, 1, 2, 1]), ("a/b", "ant", "bee"), centre)


def test_a_loader_with_workers_gives_what_a_batch_has(scenes: Dataset) -> None:
    assert isinstance(scenes, torch.utils.data.Dataset)
    loader = DataLoader(scenes, batch_size=3, num_workers=2)
    for number, batch in enumerate(loader):
        expected = scenes[range(3 * number, min(3 * number + 3, 7))]
        assert set(batch) == {"image", "question", "answer", "kind"}
        for name, part in batch.items():
            assert torch.equal(part, getattr(expected, name))


def test_a_sample(scenes: Dataset, classes: Dataset) -> None:
    sample = scenes[3]
    assert sample["image"].shape == (3, 75, 75)
    assert torch.equal(sample["answer"], scenes[[3]].answer[0])
    assert torch.equal(scenes[-1]["image"], scenes[6]["image"])
    assert set(classes[0]) == {"image", "answer", "centre"}
    with pytest.raises(IndexError, match="7 images"):
        scenes[7]


@pytest.fixture(scope="module")
def worded(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    folder = tmp_path_factory.mktemp("own")
    pixels = np.random.default_rng(0).integers(0, 256, (6, 12, 12, 3), np.uint8)
    lines = []
    for number, image in enumerate(pixels):
        Image.fromarray(image).save(folder / f"{number}.png")
        texts = ["is it", "what is in the left half", "how many are there"][: 1 + number % 3]
        lines += [json.dumps({"image": f"{number}.png", "question": text, "answer": "yes"}) for text in texts]
    (folder / "questions.jsonl").write_text("\n".join(lines))
    return open_dataset("own", "train", data=folder, size=16)


def test_questions_of_other_lengths_are_padded(worded: Dataset) -> None:
    together = next(iter(DataLoader(worded, batch_size=len(worded))))
    one_by_one = collate([worded[index] for index in range(len(worded))])
    for name, part in together.items():
        assert torch.equal(one_by_one[name], part)
    assert (together["answer"] == IGNORE_INDEX).any()


def test_parts_and_sums_of_data_sets(worded: Dataset) -> None:
    part = next(iter(DataLoader(Subset(worded, [2, 0]), batch_size=2)))
    assert torch.equal(part["image"], worded[[2, 0]].image)
    both: ConcatDataset[Any] = ConcatDataset([worded, worded])
    assert len(next(iter(DataLoader(both, batch_size=2 * len(worded), collate_fn=collate)))["image"]) == len(both)


def test_transforms_of_torchvision(scenes: Dataset) -> None:
    import_torchvision()
    v2 = import_module("torchvision.transforms.v2")
    transform = v2.Compose([v2.Resize((32, 24)), v2.ToDtype(torch.float32, scale=True)])
    batch = next(iter(DataLoader(TransformedDataset(scenes, transform), batch_size=4)))
    assert batch["image"].shape == (4, 3, 32, 24)
    assert 0 <= batch["image"].min() < batch["image"].max() <= 1
    assert torch.equal(v2.RandomHorizontalFlip(p=1)(scenes[0])["image"], scenes[0]["image"].flip(2))


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)))


def test_parquet_of_questions(scenes: Dataset, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    (path,) = export_dataset(scenes, "parquet", tmp_path / "out")
    table = parquet.read_table(path)
    assert json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]["image"] == {"_type": "Image"}
    rows = table.to_pylist()
    assert len(rows) == 7
    expected = scenes[[5]]
    assert np.array_equal(pixels(rows[5]["image"]["bytes"]), expected.image[0].permute(1, 2, 0))
    assert rows[5]["answers"] == [scenes.answers[answer] for answer in expected.answer[0].tolist()]
    assert expected.kind is not None
    assert rows[5]["kinds"] == [scenes.kinds[kind] for kind in expected.kind[0].tolist()]
    assert all(question.endswith("?") for question in rows[5]["questions"])


def test_an_image_folder_of_classes(classes: Dataset, tmp_path: Path) -> None:
    import_torchvision()
    (folder,) = export_dataset(classes, "imagefolder", tmp_path)
    read = import_module("torchvision.datasets").ImageFolder(folder)
    assert read.classes == ["a_b", "ant", "bee"]
    expected = {classes[index]["image"].numpy().tobytes(): int(classes[index]["answer"]) for index in range(5)}
    assert {np.asarray(image.convert("L")).tobytes(): label for image, label in read} == expected
    lines = [json.loads(line) for line in (folder / "metadata.jsonl").read_text().splitlines()]
    assert lines[3]["centre"] == classes[3]["centre"].tolist()
    with pytest.raises(BcnError, match="there already"):
        export_dataset(classes, "imagefolder", tmp_path)


def test_archives(worded: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bcn.data.export.SHARD", 2)
    paths = export_dataset(worded, "webdataset", tmp_path / "one")
    assert len(paths) == -(-len(worded) // 2)
    samples: dict[str, dict[str, Any]] = {}
    for path in paths:
        with tarfile.open(path) as archive:
            for member in archive:
                key, _, kind = member.name.partition(".")
                file = archive.extractfile(member)
                assert file is not None
                samples.setdefault(key, {})[kind] = file.read()
    assert list(samples) == [f"{number:06}" for number in range(len(worded))]
    row = json.loads(samples["000002"]["json"])
    assert len(row["questions"]) == len(row["answers"]) == int((worded[2]["answer"] != IGNORE_INDEX).sum())
    assert np.array_equal(pixels(samples["000002"]["png"]), worded[2]["image"].permute(1, 2, 0))
    again = export_dataset(worded, "webdataset", tmp_path / "two")
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in paths]


class Interrupted(ArrayDataset):
    """Ctrl-C is pressed when the last image is read."""

    def batch(self, index: Any) -> Any:
        if len(self) - 1 in index:
            raise KeyboardInterrupt
        return super().batch(index)


@pytest.mark.parametrize("to", ["parquet", "imagefolder", "webdataset"])
def test_an_export_that_is_interrupted_leaves_nothing_behind(
    classes: ArrayDataset, to: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bcn.data.export.SHARD", 2)
    monkeypatch.setattr("bcn.data.export.READ", 2)
    dataset = Interrupted(**vars(classes))
    with pytest.raises(KeyboardInterrupt):
        export_dataset(dataset, to, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []
    assert export_dataset(classes, to, tmp_path / "out")  # and the same command goes on


@pytest.mark.parametrize("to", ["parquet", "imagefolder", "webdataset"])
def test_a_full_disk_is_a_sentence_and_stays_empty(scenes: Dataset, to: str, tmp_path: Path) -> None:
    with mount_disk(tmp_path / "disk", kilobytes=4):
        with pytest.raises(BcnError, match=r"^cannot write [^\n]*No space left on device; [^\n]*$"):
            export_dataset(scenes, to, tmp_path / "disk")
        assert list((tmp_path / "disk").iterdir()) == []


def test_where_no_directory_can_be_made(classes: Dataset, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(BcnError, match="give a directory with room that can be written"):
            export_dataset(classes, "imagefolder", out)
    assert (tmp_path / "file").read_text() == "kept"


def test_archives_of_an_earlier_export_are_not_mixed_in(scenes: Dataset, classes: Dataset, tmp_path: Path) -> None:
    (tmp_path / "test-000003.tar").write_bytes(b"")
    export_dataset(scenes, "webdataset", tmp_path)  # another split
    with pytest.raises(BcnError, match=r"test-000003\.tar is there already"):
        export_dataset(classes, "webdataset", tmp_path)


def test_a_class_stays_in_its_folder(tmp_path: Path) -> None:
    names = ("..", "../../up", ".", "/etc")
    dataset = ArrayDataset("noise-v1", "test", np.zeros((4, 1, 8, 9), np.uint8), np.arange(4), names)
    (folder,) = export_dataset(dataset, "imagefolder", tmp_path / "deep" / "out")
    files = [path.relative_to(folder) for path in tmp_path.rglob("*.png")]
    assert len(files) == 4
    assert {len(path.parts) for path in files} == {2}


def test_a_format_that_is_unknown(classes: Dataset, tmp_path: Path) -> None:
    with pytest.raises(BcnError, match="parquet, imagefolder, webdataset"):
        export_dataset(classes, "csv", tmp_path)
