"""Training on one's own images and questions, from files to figures."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.command import exit_code, invoke_bcn, run_bcn
from helpers.squares import draw, own_layout
from PIL import Image

import bcn
from bcn import BcnError
from bcn.data.check import check_directory
from bcn.data.dataset import MAX_NAME, MAX_NAMES
from bcn.data.decode import to_rgb_or_gray
from bcn.data.images import read_image
from bcn.data.registry import open_dataset
from bcn.data.vqa.layouts import read_questions
from bcn.paper.tables import find_recipe
from bcn.training.loop import train
from bcn.training.losses import answer_loss
from bcn.training.metrics import evaluate
from bcn.training.recipe import Data
from bcn.training.splits import Splits
from bcn.training.weights import load_model


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return own_layout(tmp_path_factory.mktemp("data") / "mine", kinds=True)


@pytest.fixture(autouse=True)
def cache(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BCN_CACHE", str(mine.with_name("cache")))


def test_own_test_questions_without_answers_are_not_what_is_tested(tmp_path: Path) -> None:
    own_layout(tmp_path, 12)
    lines = [json.loads(line) for line in (tmp_path / "questions.jsonl").read_text().splitlines()]
    for number, line in enumerate(lines):
        line["split"] = "train" if number < 16 else "val" if number < 20 else "test"
        if line["split"] == "test":
            del line["answer"]
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert open_dataset("own", "test", data=tmp_path).split == "val"
    assert open_dataset("own", "test", data=tmp_path).checksum() == open_dataset("own", "val", data=tmp_path).checksum()
    with pytest.raises(BcnError, match="has no split 'dev'"):
        open_dataset("own", "dev", data=tmp_path)


def test_own_data_is_learned_and_asked_by_the_command(mine: Path, tmp_path: Path) -> None:
    run = ["train", "own", "--data", str(mine), "--runs", str(tmp_path), "--set", "epochs=12", "--from", "none"]
    run_bcn(*run, "--set", "optim.ema_decay=none", "--set", "optim.lr=0.002")
    (directory,) = tmp_path.glob("own-*")
    record = json.loads((directory / "record.json").read_text())
    asked = record["metrics"]["test"]
    assert asked["colour"]["total"] == asked["number"]["total"] > 0
    losses = [epoch["loss"] for epoch in record["curve"]]
    assert losses[-1] < 0.6 * losses[0]
    picture = mine / "pictures" / "0.png"
    said = run_bcn("ask", picture, "how many Squares?", "WHAT colour?", "--weights", directory, "--json")
    answers = json.loads(said)["answers"]
    assert [answer["question"] for answer in answers] == ["how many squares", "what colour"]
    for answer in answers:
        own = {answer["answer"], *(other["answer"] for other in answer["others"])}
        assert own == {"1", "2", "3", "blue", "green", "red"}
    with pytest.raises(BcnError, match="no word that was trained on"):
        run_bcn("ask", picture, "wer da?", "--weights", directory)
    evaluated = run_bcn("eval", directory, "--data", mine, "--json")
    assert json.loads(evaluated)["metrics"]["all"] == asked["all"]


def test_own_data_that_is_asked_without_kinds(tmp_path: Path) -> None:
    record = train(find_recipe("own", "smoke"), seed=0, runs=tmp_path / "runs", data=own_layout(tmp_path / "mine"))
    assert list(record["metrics"]["test"]) == ["all"]


def test_a_finished_run_of_another_folder_is_not_shown(mine: Path, tmp_path: Path) -> None:
    run = ["train", "own", "--scale", "smoke", "--runs", str(tmp_path / "runs"), "--data"]
    run_bcn(*run, mine)
    assert "record.json" in invoke_bcn(*run, mine).output.replace("\n", "")
    other = own_layout(tmp_path / "other", images=28, kinds=True)
    draw(other / "pictures" / "0.png", "blue", 4, 50)
    with pytest.raises(BcnError, match="began with other data"):
        run_bcn(*run, other)
    with pytest.raises(BcnError, match="nowhere is not a directory"):
        run_bcn(*run, tmp_path / "nowhere")


def test_texts_that_changed_are_other_data(mine: Path, tmp_path: Path) -> None:
    """Also where every word and answer has the number that it had before."""
    run = ["train", "own", "--scale", "smoke", "--runs", str(tmp_path / "runs"), "--data"]
    run_bcn(*run, mine)
    for word, other in (("squares", "squarez"), ('"green"', '"greem"')):
        copied = Path(shutil.copytree(mine, tmp_path / other))
        lines = (copied / "questions.jsonl").read_text()
        (copied / "questions.jsonl").write_text(lines.replace(word, other))
        with pytest.raises(BcnError, match=r"began with other data \(texts\)"):
            run_bcn(*run, copied)


def test_a_model_is_asked_in_its_own_words_about_another_folder(mine: Path, tmp_path: Path) -> None:
    """What is trained on there does not matter, and a test without answers is not taken for one."""
    record = train(find_recipe("own", "smoke"), seed=0, runs=tmp_path / "runs", data=mine)
    run = tmp_path / "runs" / record["run"]
    other = Path(shutil.copytree(mine, tmp_path / "other"))
    lines = [json.loads(line) for line in (mine / "questions.jsonl").read_text().splitlines()]
    val = {asked.image.as_posix() for asked in read_questions(mine, "val")}
    lines = [line | {"split": "val"} for line in lines if line["image"] in val]
    lines += [{"image": "pictures/1.png", "question": "Eh?", "answer": "what", "kind": "number", "split": "train"}]
    lines += [{"image": "pictures/2.png", "question": "How many squares?", "kind": "number", "split": "test"}]
    (other / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = [
        json.loads(run_bcn("eval", run, "--data", folder, "--split", split, "--json"))
        for folder, split in ((mine, "val"), (other, "val"), (other, "test"))
    ]
    assert found[0]["metrics"]["all"]["total"] == 2 * len(val)
    assert found[0] == found[1] == found[2]


def test_more_words_than_two_bytes_count(tmp_path: Path) -> None:
    draw(tmp_path / "a.png", "red", 1, 0)
    write_words(tmp_path, 70_000)
    dataset = open_dataset("own", "train", data=tmp_path)
    question = dataset[np.arange(len(dataset))].question
    assert question is not None
    assert len(set(question.flatten().tolist()) - {0}) == 70_000


def write_words(directory: Path, count: int) -> None:
    """Questions of so many different words, a hundred in each."""
    with open(directory / "questions.jsonl", "w") as file:
        for first in range(0, count, 100):
            words = " ".join(f"w{number}" for number in range(first, first + 100))
            file.write(json.dumps({"image": "a.png", "question": words, "answer": "yes", "split": "train"}) + "\n")


def test_more_words_than_a_weights_file_names_are_refused(tmp_path: Path) -> None:
    write_words(tmp_path, MAX_NAMES + 100)
    with pytest.raises(BcnError, match=r"questions.jsonl has 100,100 different words: accepted are up to 100,000"):
        open_dataset("own", "train", data=tmp_path)


ANSWERS = {"red": "ro\u200cuge\u00a0vif", "green": "\N{FAMILY}\u200d\N{EAR}", "blue": "b" * MAX_NAME}


def test_what_is_trained_on_can_be_loaded(tmp_path: Path) -> None:
    """Answers, kinds and words of any language, as long as is accepted."""
    lines = own_layout(tmp_path / "mine", kinds=True).joinpath("questions.jsonl").read_text()
    for plain, other in (ANSWERS | {"squares": "x" * MAX_NAME, "colour": "k" * MAX_NAME}).items():
        lines = lines.replace(plain, json.dumps(other)[1:-1])
    (tmp_path / "mine" / "questions.jsonl").write_text(lines)
    record = train(find_recipe("own", "smoke"), seed=0, runs=tmp_path / "runs", data=tmp_path / "mine")
    assert set(ANSWERS.values()) <= set(bcn.load(tmp_path / "runs" / record["run"]).answers)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"question": "why " * 251}, '"question" has 1,004 characters: accepted are up to 1,000'),
        ({"question": "y" * 201}, "the question has a word of 201 characters: accepted are up to 200"),
        ({"answer": "y" * 201}, '"answer" has 201 characters: accepted are 1 to 200'),
        ({"answer": "yes\nno"}, '"answer" has characters that cannot be printed in a line'),
        ({"answer": "\u202eon"}, '"answer" has characters that cannot be printed'),
        ({"kind": "k" * 201}, '"kind" has 201 characters'),
        ({"image": "a/" * 600}, '"image" has 1,200 characters'),
    ],
)
def test_texts_that_no_weights_file_could_hold_are_refused(
    tmp_path: Path, change: dict[str, str], problem: str
) -> None:
    line = {"image": "a.png", "question": "why?", "answer": "yes", "split": "train"} | change
    (tmp_path / "questions.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(BcnError, match=rf"questions.jsonl, line 1: {problem}"):
        open_dataset("own", "train", data=tmp_path)


def test_images_of_16_bits_are_seen_and_those_of_32_refused(tmp_path: Path) -> None:
    ramp = np.linspace(0, 65535, 64 * 64).reshape(64, 64)
    eight = to_rgb_or_gray(Image.fromarray((ramp / 257).astype(np.uint8)))
    for name, kind in (("a.png", np.uint16), ("a.tiff", np.uint16), ("b.tiff", np.int32), ("f.tiff", np.float32)):
        Image.fromarray(ramp.astype(kind)).save(tmp_path / name)
    for name in ("a.png", "a.tiff"):
        with Image.open(tmp_path / name) as image:
            assert np.abs(np.asarray(to_rgb_or_gray(image), float) - np.asarray(eight, float)).max() <= 1
    for name in ("b.tiff", "f.tiff"):
        with pytest.raises(BcnError, match="save it with 8 or 16"):
            read_image(tmp_path / name)
        line = {"image": name, "question": "What is it?", "answer": "a ramp", "split": "train"}
        (tmp_path / "questions.jsonl").write_text((json.dumps(line) + "\n") * 2)
        assert f"1 images cannot be read: {name}; save them as PNG" in check_directory(tmp_path)[0]
        with pytest.raises(BcnError, match=rf"cannot read the image .*{name}: its pixels have 32 bits"):
            open_dataset("own", "train", data=tmp_path)


def test_answers_that_training_never_gives_count_as_wrong(tmp_path: Path) -> None:
    path = own_layout(tmp_path / "mine", 8) / "questions.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for number, line in enumerate(lines):
        line["split"] = "train" if number < 8 else "val"
        line["answer"] = {8: "purple", 9: None}.get(number, line["answer"])
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    recipe = replace(find_recipe("own", "smoke"), data=Data("own"))
    record = train(recipe, seed=0, runs=tmp_path / "runs", data=path.parent)
    assert record["metrics"]["test"]["all"]["total"] == 7  # not the one that has no answer
    dataset = open_dataset("own", "val", data=path.parent)
    batch = dataset[range(len(dataset))]
    assert (batch.answer == -1).sum() == 3  # purple, and twice the number of three squares
    run, picture = tmp_path / "runs" / record["run"], tmp_path / "confusion.png"
    said = run_bcn("eval", run, "--data", path.parent, "--json", "--confusion", picture)
    assert json.loads(said)["metrics"] == record["metrics"]["test"]
    assert picture.exists()
    logits = torch.randn(*batch.answer.shape, len(dataset.answers))
    known = batch.answer >= 0
    by_hand = -logits.log_softmax(-1)[known][torch.arange(4), batch.answer[known]].sum()
    torch.testing.assert_close(answer_loss(logits, None, batch, localise=False), by_hand)
    tally = evaluate(load_model(run)[0], dataset, batch_size=3)
    assert tally.mean_loss == pytest.approx(tally.loss / 4)


def test_own_images_have_the_size_of_the_model(mine: Path, tmp_path: Path) -> None:
    recipe = replace(find_recipe("own", "smoke"), model="clevr/multirn-h-224", epochs=1)
    assert Splits.open(recipe, mine).train[[0]].image.shape == (1, 3, 224, 224)
    record = train(recipe, seed=0, runs=tmp_path, data=mine)
    run = tmp_path / record["run"]
    evaluated = run_bcn("eval", run, "--data", mine, "--images", 1, "--json")
    assert json.loads(evaluated)["metrics"]["all"] == record["metrics"]["test"]["all"]
    out = tmp_path / "answers.json"
    run_bcn("clevr", "answer", run, mine, "--split", "val", "--out", out)
    lines = [json.loads(line) for line in (mine / "questions.jsonl").read_text().splitlines()]
    for said in json.loads(out.read_text()):
        line = lines[said["question_index"] - 1]
        (asked,) = bcn.load(run).ask(mine / line["image"], line["question"])
        assert asked.answer == said["answer"]
    with pytest.raises(BcnError, match="did you mean 'clevr/multirn'"):
        Splits.open(replace(recipe, model="clver/multirn"), mine)


def test_there_must_be_answers_to_learn_from_and_to_choose_by(tmp_path: Path) -> None:
    path = own_layout(tmp_path / "mine", 12) / "questions.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for split, problem in (("val", "has an answer that train has, to choose an epoch by"), ("train", "has an answer:")):
        for number, line in enumerate(lines):
            line["split"] = "train" if number < 16 else "val"
            line["answer"] = None if line["split"] == split else line["answer"]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        with pytest.raises(BcnError, match=f"^no question of {split} {problem}"):
            train(find_recipe("own", "smoke"), seed=0, runs=tmp_path / "runs", data=path.parent)


def test_questions_that_say_no_kind_where_others_do(tmp_path: Path) -> None:
    path = own_layout(tmp_path / "mine", kinds=True) / "questions.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for number, line in enumerate(lines[::4]):
        line["kind"] = "other" if number % 2 else None
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    record = train(find_recipe("own", "smoke"), seed=0, runs=tmp_path / "runs", data=path.parent)
    figures = record["metrics"]["test"]
    assert sum(figures[kind]["total"] for kind in figures if kind != "all") == figures["all"]["total"] == 2
    dataset = open_dataset("own", "train", data=path.parent)
    assert dataset.kinds == ("colour", "number", "other")
    kind = dataset[range(len(dataset))].kind
    assert kind is not None
    assert set(kind.flatten().tolist()) == {0, 1, 2}


def test_the_command_checks_a_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = own_layout(tmp_path / "mine")
    run_bcn("data", "check", own)
    capsys.readouterr()
    (own / "pictures" / "3.png").unlink()
    assert exit_code("data", "check", own) == 2
    assert "pictures/3.png" in capsys.readouterr().out
