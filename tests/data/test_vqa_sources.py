"""Data sets of questions in words by their names: which files they come from, which images each split has."""

from pathlib import Path

import pytest
from helpers.squares import clevr_layout

from bcn.data.registry import open_dataset
from bcn.data.vqa.sources import find_held, open_source
from bcn.errors import BcnError


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    clevr_layout(root / "clevr-like-v1", {"train": 6, "val": 3, "test": 5})
    clevr_layout(root / "CLEVR_v1.0", {"train": 8, "val": 4})
    return root


@pytest.fixture(autouse=True)
def environment(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BCN_CACHE", str(data / "cache"))
    monkeypatch.setenv("BCN_DATA", str(data))


def test_splits_of_published_clevr(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bcn.data.vqa.sources.HELD_OUT", 3)
    train_, val, test = (open_source("clevr-v1.0", split) for split in ("train", "val", "test"))
    assert [len(part) for part in (train_, val, test)] == [5, 3, 4]
    assert not set(train_.rows[:, 0]) & set(val.rows[:, 0])
    assert [len(open_dataset("clevr-v1.0", split, images=2)) for split in ("train", "val", "test")] == [2, 2, 2]
    with pytest.raises(BcnError, match=r"4 images were asked of clevr-v1\.0 val, which has 3"):
        open_dataset("clevr-v1.0", "val", images=4)


def test_splits_of_cogent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Condition A is trained on and tested on; valB is there for whoever asks."""
    monkeypatch.setattr("bcn.data.vqa.sources.HELD_OUT", 2)
    cogent = clevr_layout(tmp_path / "CLEVR_CoGenT_v1.0", {"trainA": 5, "valA": 3, "valB": 4})
    parts = {split: open_dataset("clevr-v1.0", split, data=cogent) for split in ("train", "val", "test", "valB")}
    assert [len(part) for part in parts.values()] == [3, 2, 3, 4]
    assert len({part.vocabulary for part in parts.values()}) == 1
    with pytest.raises(BcnError, match=r"has no split 'valC': it has train, val, test, trainA, valA, valB"):
        open_dataset("clevr-v1.0", "valC", data=cogent)


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(BcnError, match="bcn clevr make"):
        open_dataset("clevr-like-v1", "train", data=tmp_path)
    with pytest.raises(BcnError, match="unpack CLEVR"):
        open_dataset("clevr-v1.0", "train", data=tmp_path)
    with pytest.raises(BcnError, match=r"questions\.jsonl"):
        open_dataset("own", "train", data=tmp_path)


def test_words_of_a_model_for_other_data(data: Path) -> None:
    dataset = open_dataset("clevr-like-v1", "test")
    words, answers = ("color", "it", "what", "zebra"), ("blue", "red", "2")
    other = open_source("clevr-like-v1", "test", words=words, answers=answers)
    question = other[[0]].question
    assert question is not None
    assert other.vocabulary.decode(question[0, 1].tolist()) == ["what", "color", "?", "it"]
    before, after = dataset[range(5)], other[range(5)]
    for was, now in zip(before.answer.flatten().tolist(), after.answer.flatten().tolist(), strict=True):
        name = dataset.answers[was] if was >= 0 else None
        assert now == (-100 if name is None else answers.index(name) if name in answers else -1)


def test_a_directory_of_another_data_set_is_refused(data: Path) -> None:
    with pytest.raises(BcnError, match=r"holds clevr-v1\.0, not clevr-like-v1"):
        open_dataset("clevr-like-v1", "test", data=data / "CLEVR_v1.0")


def test_what_a_directory_holds(data: Path, tmp_path: Path) -> None:
    assert find_held(data / "CLEVR_v1.0", 128) == "clevr-v1.0"
    assert find_held(data / "CLEVR_v1.0", 224) == "clevr-v1.0-224"
    assert find_held(data / "clevr-like-v1", 128) == "clevr-like-v1"
    assert find_held(data, 128) is None
    assert find_held(None, 128) is None


def test_a_trained_model_needs_no_training_questions(data: Path, tmp_path: Path) -> None:
    clevr = clevr_layout(tmp_path / "CLEVR_v1.0", {"val": 3})
    dataset = open_source("clevr-v1.0", "test", data=clevr, words=("what", "color"), answers=("red",))
    assert len(dataset) == 3
    (clevr / "questions" / "CLEVR_train_questions.json").write_text("damaged, and not read")
    assert len(open_source("clevr-v1.0", "test", data=clevr, words=("what", "color"), answers=("red",))) == 3
