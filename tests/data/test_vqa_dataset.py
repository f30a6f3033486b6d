"""The reader of images and questions: CLEVR's layout, ours, and anyone's own."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.clevr_folder import clevr_folder, picture
from helpers.small_weights import word_weights
from PIL import Image
from PIL.ExifTags import Base

import bcn
from bcn.data.check import check_directory
from bcn.data.clevr_like.questions import make_questions
from bcn.data.clevr_like.scene import make_scene
from bcn.data.dataset import IGNORE_INDEX, OUT_OF_VOCABULARY, Preprocessing
from bcn.data.vqa.clevr import ANSWERS, KINDS, kind_of
from bcn.data.vqa.json_stream import stream_list
from bcn.data.vqa.layouts import list_splits, read_questions
from bcn.data.vqa.load import open_questions
from bcn.data.vqa.vocabulary import Vocabulary, tokenize
from bcn.errors import BcnError
from bcn.io import data_root


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BCN_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def clevr(tmp_path: Path) -> Path:
    return clevr_folder(tmp_path)


def dotted(path: Path, shade: int) -> None:
    """A picture that is not blank."""
    picture(path, shade)
    with Image.open(path) as image:
        image.load()
        image.putpixel((47, 31), (255, 255, 255))
        image.save(path)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    root = tmp_path / "cats"
    lines = [
        {"image": "a.png", "question": f"Is it number {n}?", "answer": "yes" if n % 2 else "no"} for n in range(23)
    ]
    what = {"image": "b/b.jpg", "answer": "cat", "split": "train", "kind": "what"}
    lines += [what | {"question": question} for question in ("What is it?", "It is what?")]
    lines += [{"image": "c.png", "question": "Is it a whale?", "answer": "no", "split": "val", "kind": "is"}]
    for line in lines[:23]:
        line |= {"split": "train", "kind": "is"}
    for shade, name in enumerate(("a.png", "b/b.jpg", "c.png")):
        dotted(root / name, 50 + 50 * shade)
    (root / "questions.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n\n")
    return root


def test_clevr_is_read_as_it_is_written(clevr: Path) -> None:
    assert list_splits(clevr) == ["test", "train", "val", "valB"]
    dataset = open_questions(clevr, "train", size=16)
    assert (dataset.name, len(dataset), dataset.answers, dataset.kinds) == ("clevr-v1.0", 4, ANSWERS, KINDS)
    assert len(ANSWERS) == 28
    batch = dataset[np.array([2, 1])]
    assert batch.question is not None
    assert batch.kind is not None
    for row, index in enumerate((2, 1)):
        expected = make_questions(make_scene(index))[: 3 if index == 1 else 10]
        assert np.unique(batch.image[row, 0]).tolist() == [40 * index + 5]
        for place, question in enumerate(expected):
            assert dataset.vocabulary.decode(batch.question[row, place]) == tokenize(question["question"])
            assert dataset.answers[batch.answer[row, place]] == question["answer"]
            assert dataset.kinds[batch.kind[row, place]] == kind_of(question["program"])
        assert batch.answer[row, len(expected) :].tolist() == [IGNORE_INDEX] * (10 - len(expected))
        assert not batch.question[row, len(expected) :].any()
    assert batch.question.shape[2] == int((batch.question != 0).sum(-1).max())
    assert dataset.question_index[dataset.questions(1)].tolist() == [10, 11, 12]


def test_words_and_answers_are_those_of_training(clevr: Path) -> None:
    train, val = (open_questions(clevr, split, size=16) for split in ("train", "val"))
    assert val.vocabulary == train.vocabulary
    assert val.answers == train.answers
    given = Vocabulary.from_words(["red"])
    other = open_questions(clevr, "val", size=16, vocabulary=given, answers=("no", "yes"))
    batch = other[[0, 1]]
    assert batch.question is not None
    assert set(batch.question.unique().tolist()) <= {0, 1, 2}
    assert set(batch.answer.unique().tolist()) == {IGNORE_INDEX, OUT_OF_VOCABULARY, 0, 1}


def test_a_split_without_answers_is_read(clevr: Path) -> None:
    dataset = open_questions(clevr, "test", size=16)
    batch = dataset[[0]]
    assert batch.kind is None
    assert dataset.kinds == ()
    assert batch.answer.tolist() == [[IGNORE_INDEX] * 10]
    assert dataset.question_index[dataset.questions(0)].tolist() == list(range(10))


def test_images_are_decoded_once_and_mapped(clevr: Path) -> None:
    first = open_questions(clevr, "train", size=16)
    assert isinstance(first.image, np.memmap)
    again = open_questions(clevr, "train", size=16)
    assert isinstance(again.image, np.memmap)
    assert again.image.filename == first.image.filename
    assert again.first(2).checksum() != first.checksum()


def test_images_that_are_replaced_are_decoded_again(clevr: Path) -> None:
    open_questions(clevr, "train", size=16)
    path = sorted((clevr / "images" / "train").iterdir())[2]
    picture(path, 200)
    batch = open_questions(clevr, "train", size=16)[[1, 2]]
    assert batch.image[:, 0].unique().tolist() == [45, 200]
    path.unlink()
    with pytest.raises(BcnError, match="cannot read the image"):
        open_questions(clevr, "train", size=16)


def test_training_sees_what_is_asked_about(own: Path) -> None:
    """A photograph that is to be turned, one with a transparent ground, and one without colours."""
    noise = np.random.default_rng(0).integers(0, 256, (32, 48, 4), np.uint8)
    exif = Image.Exif()
    exif[Base.Orientation] = 6
    Image.fromarray(noise[..., :3]).save(own / "a.png", exif=exif)
    Image.fromarray(noise).save(own / "b" / "b.jpg", format="PNG")
    Image.fromarray(noise[..., 0]).save(own / "c.png")
    for split, files in (("train", ("a.png", "b/b.jpg")), ("val", ("c.png",))):
        dataset = open_questions(own, split, size=128)
        for image, file in zip(dataset.image, files, strict=True):
            asked = bcn.load(word_weights()).pixels(own / file)
            assert torch.equal(Preprocessing((0.5,), (0.5,))(torch.from_numpy(image[None].copy())), asked)
    turned = Image.fromarray(noise[..., :3]).transpose(Image.Transpose.ROTATE_270)
    seen = open_questions(own, "train", size=128).image[0].transpose(1, 2, 0)
    assert np.array_equal(np.asarray(turned.resize((128, 128), Image.Resampling.BILINEAR)), seen)


def test_own_images_and_questions(own: Path) -> None:
    train, val = (open_questions(own, split, size=20) for split in ("train", "val"))
    assert (train.name, train.answers) == ("cats", ("cat", "no", "yes"))
    assert train.kinds == ("is", "what")
    assert train.rows[:, 2].tolist() == [10, 10, 3, 2]  # an image with 23 questions has three rows
    assert train.rows[:, 0].tolist() == [0, 0, 0, 1]
    batch = train[[2, 3]]
    assert batch.answer.tolist() == [[1, 2, 1], [0, 0, IGNORE_INDEX]]
    asked = val[[0]].question
    assert asked is not None
    assert val.vocabulary.decode(asked[0, 0]) == ["is", "it", "?", "?"]  # "a whale" was never asked in training
    assert val.first(1).answers == train.answers


def test_without_splits_a_tenth_of_the_images_is_held_out(tmp_path: Path) -> None:
    lines = [json.dumps({"image": f"{n}.png", "question": "What?", "answer": "that"}) for n in range(500) for _ in "ab"]
    (tmp_path / "questions.jsonl").write_text("\n".join(lines))
    files = [{asked.image for asked in read_questions(tmp_path, split)} for split in ("train", "val", "test")]
    assert not files[0] & files[1]
    assert all(30 <= len(held_out) <= 70 for held_out in files[1:])
    assert len(set().union(*files)) == sum(map(len, files)) == 500


def test_check_finds_what_is_wrong(own: Path) -> None:
    assert check_directory(own) == ["2 words of val are not among those of train: a, whale; use them there"]
    (own / "c.png").write_bytes((own / "a.png").read_bytes())
    (own / "b" / "b.jpg").write_bytes(b"not an image")
    with open(own / "questions.jsonl", "a") as file:
        for image, answer, split in (("d.png", "dog", "train"), ("a.png", "bird", "val")):
            file.write(json.dumps({"image": image, "question": "What is it?", "answer": answer, "split": split}) + "\n")
    assert check_directory(own) == [
        "1 images are missing: d.png; bring them, or take their questions out",
        "1 images cannot be read: b/b.jpg; save them as PNG or JPEG, with 8 bits",
        "1 images are in more than one split: a.png (train) = a.png (val) = c.png (val); ask about each in one of them",
        "1 answers are given once only in train: dog; ask for them more often",
        "2 words of val are not among those of train: a, whale; use them there",
        "1 answers of val are never given in train: bird; ask for them there",
    ]
    with open(own / "questions.jsonl", "a") as file:
        file.write('{"image": "a.png"}\n')
    assert "line 30: it has no 'question'" in check_directory(own)[0]
    with pytest.raises(BcnError, match="line 30: it has no 'question'"):
        open_questions(own, "train")


GOOD = {"image": "a.png", "question": "Is it red?", "answer": "yes", "split": "train"}
AGAIN = GOOD | {"question": "Red, is it?"}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"{", "line 5: Expecting property name"),
        (b"[1]", "line 5: it is not an object in braces"),
        (b'{"image": "a.png", "question": "caf\xe9"}', "line 5: 'utf-8' codec can't decode"),
        (json.dumps(GOOD | {"image": ["a.png"]}).encode(), 'line 5: "image" is neither a text nor a number'),
        (json.dumps(GOOD | {"answer": ["yes"]}).encode(), 'line 5: "answer" is neither a text nor a number'),
        (json.dumps(GOOD | {"question": "?!"}).encode(), "line 5: the question has no words"),
        (
            json.dumps(GOOD | {"image": "/a.png"}).encode(),
            'line 5: "image" is "/a.png", and not a path within',
        ),
        (json.dumps(GOOD | {"image": "b/../../a.png"}).encode(), 'line 5: "image" is "b/../../a.png", and not a path'),
        (json.dumps(GOOD | {"kind": "all"}).encode(), 'line 5: "kind" is "all", which is the name'),
        (json.dumps(GOOD | {"kind": "localisation"}).encode(), 'line 5: "kind" is "localisation", which is the name'),
        (b"[" * 200_000, "line 5: it has too many brackets within brackets"),
        (json.dumps(GOOD | {"answer": None}).encode(), "1 questions of train have no answer"),
        (json.dumps(GOOD | {"split": 3}).encode(), "1 splits are not used: 3; call them train, val or test"),
        (json.dumps(GOOD | {"answer": " Yes"}).encode(), "1 answers are written in several ways"),
        (json.dumps(GOOD | {"image": "big.png"}).encode(), "1 images cannot be read: big.png"),
        (json.dumps(GOOD | {"image": f"{'a' * 300}.png"}).encode(), "1 images are missing: aaa"),
        (json.dumps(GOOD | {"image": "\ud800.png"}).encode(), "line 5: 'utf-8' codec can't encode"),
        (json.dumps(GOOD | {"answer": "\ud800"}).encode(), "line 5: 'utf-8' codec can't encode"),
        (json.dumps(GOOD | {"split": "a/b"}).encode(), 'line 5: "split" is "a/b": its name may have'),
        (json.dumps(GOOD | {"split": "a" * 65}).encode(), 'line 5: "split" is "aaa'),
    ],
)
def test_check_names_every_broken_line(line: bytes, problem: str, tmp_path: Path) -> None:
    dotted(tmp_path / "a.png", 9)
    dotted(tmp_path / "b.png", 99)
    if "big.png" in problem:
        Image.new("1", (20_000, 20_000)).save(tmp_path / "big.png")  # more pixels than Pillow decodes
    lines = [json.dumps(entry).encode() for entry in (GOOD, AGAIN, GOOD | {"image": "b.png", "split": "val"})]
    file = tmp_path / "questions.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + b"\n".join(lines) + b"\n")
    assert check_directory(tmp_path) == []
    file.write_bytes(b"\n".join([*lines, b"", line, *lines]))
    assert any(problem in found for found in check_directory(tmp_path)), check_directory(tmp_path)
    if problem.startswith("line"):
        with pytest.raises(BcnError, match=problem[:6]):
            open_questions(tmp_path, "train")


def test_check_wants_something_to_choose_the_epoch_by(tmp_path: Path) -> None:
    dotted(tmp_path / "a.png", 9)
    (tmp_path / "questions.jsonl").write_text(f"{json.dumps(GOOD)}\n{json.dumps(AGAIN)}\n")
    assert "has no split val" in check_directory(tmp_path)[0]


def test_check_wants_answers_to_learn_from_and_to_choose_by(own: Path) -> None:
    path = own / "questions.jsonl"
    lines = [json.loads(line) for line in path.read_text().split("\n") if line]
    for split in ("val", "train"):
        for line in lines:
            line["answer"] = None if line["split"] == split else line["answer"]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        assert f"no question of {split} has an answer: give them one" in check_directory(own)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\n \n", "has no questions: give it a line"),
        (json.dumps(GOOD).encode("utf-16"), "is written in UTF-16, or is no text: save it as UTF-8"),
        (None, "Is a directory; give a file with a line for each question"),
    ],
)
def test_a_file_without_lines_to_read_is_one_sentence(content: bytes | None, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(BcnError, match=problem):
        open_questions(tmp_path, "train")
    try:
        (said,) = check_directory(tmp_path)
    except BcnError as error:
        said = str(error)
    assert problem in said


def test_splits_are_looked_for_once(own: Path) -> None:
    path = own / "questions.jsonl"
    state = path.stat()
    assert list_splits(own) == ["train", "val"]
    path.write_bytes(b"?" * state.st_size)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert list_splits(own) == ["train", "val"]
    path.write_text(json.dumps(GOOD | {"split": "test"}))
    assert list_splits(own) == ["test"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"question_index": "abc"}, '"question_index" is not a whole number'),
        ({"question": None}, '"question" is neither a text nor a number'),
        ({"question": "?"}, "the question has no words"),
        ({"image_filename": {}}, '"image_filename" is neither a text nor a number'),
        ({"program": "count"}, '"program" is not a list of functions'),
        ({"program": [{"function": "cuont"}]}, "unknown kind of question 'cuont': did you mean 'count'?"),
    ],
)
def test_what_is_wrong_with_an_entry_of_clevr_is_said(clevr: Path, change: dict[str, Any], problem: str) -> None:
    path = clevr / "questions" / "CLEVR_val_questions.json"
    content = json.loads(path.read_text())
    content["questions"][3] |= change
    path.write_text(json.dumps(content))
    with pytest.raises(BcnError) as said:
        open_questions(clevr, "val", size=16)
    assert str(said.value) == f"{path}, question 3: {problem} (docs/reference/question-files.md shows the form)"
    assert str(said.value) in check_directory(clevr)


def test_a_file_of_clevr_that_is_not_text(clevr: Path) -> None:
    path = clevr / "questions" / "CLEVR_val_questions.json"
    path.write_bytes(path.read_bytes().replace(b"there", b"th\xe9re"))
    with pytest.raises(BcnError, match=r"CLEVR_val_questions\.json is not in UTF-8"):
        open_questions(clevr, "val", size=16)
    path.write_text('{"questions": [' + "[" * 200_000)
    with pytest.raises(BcnError, match="ends or breaks within the list 'questions'"):
        open_questions(clevr, "val", size=16)
    path.unlink()
    path.mkdir()
    assert list_splits(clevr) == ["test", "train", "valB"]


def test_check_of_clevr_reports_a_broken_file(clevr: Path) -> None:
    path = clevr / "questions" / "CLEVR_val_questions.json"
    path.write_text(path.read_text()[:-200])
    assert any("ends or breaks within the list 'questions'" in problem for problem in check_directory(clevr))


@pytest.mark.parametrize("block", [1, 7, 64, 1 << 20])
def test_a_list_is_streamed_whatever_the_blocks(clevr: Path, block: int) -> None:
    path = clevr / "questions" / "CLEVR_valB_questions.json"
    assert list(stream_list(path, "questions", block=block)) == json.loads(path.read_text())["questions"]
    with pytest.raises(BcnError, match="has no list 'answers'"):
        list(stream_list(path, "answers", block=block))


def test_wrong_places_are_named(tmp_path: Path, clevr: Path) -> None:
    with pytest.raises(BcnError, match="holds neither"):
        open_questions(tmp_path / "nowhere", "train")
    with pytest.raises(BcnError, match="has no split 'dev': it has test, train, val, valB"):
        open_questions(clevr, "dev")
    with pytest.raises(BcnError, match="give 1 to 4"):
        open_questions(clevr, "train", size=16, images=5)


@pytest.mark.data("clevr")
def test_original_images_with_questions_about_their_scenes(tmp_path: Path) -> None:
    """The ten original val images, in place, with questions made from their scenes: the transfer test's data."""
    source = data_root() / "clevr"
    scenes = json.loads((source / "scenes" / "CLEVR_val_scenes_500.json").read_text())["scenes"][10:20]
    (tmp_path / "images").symlink_to(source / "images")
    (tmp_path / "questions").mkdir()
    asked = [question for scene in scenes for question in make_questions(scene)]
    (tmp_path / "questions" / "CLEVR_val_questions.json").write_text(json.dumps({"info": {}, "questions": asked}))
    dataset = open_questions(tmp_path, "val")
    assert dataset.image.shape == (10, 3, 128, 128)
    pixels = dataset.preprocessing(dataset[np.arange(10)].image)
    assert pixels.mean().abs() < 0.3
    assert 0.7 < pixels.std() < 1.3
