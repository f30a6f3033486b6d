"""Batch prediction, and asking about several images."""

import csv
import json
from pathlib import Path

import pytest
from helpers.command import run_bcn
from helpers.squares import own_layout

import bcn
from bcn.data.sort_of_clevr import make_sort_of_clevr
from bcn.errors import BcnError

NAME = "sort-of-clevr/multirn-h"
QUESTIONS = ["Is the red object on the left?", "What is the shape of the object closest to the blue one?"]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from PIL import Image

    folder = tmp_path_factory.mktemp("pictures")
    for number, image in enumerate(make_sort_of_clevr("sort-of-clevr-v1", "test", images=3)[[0, 1, 2]].image):
        Image.fromarray(image.permute(1, 2, 0).numpy()).save(folder / f"{number}.png")
    (folder / "questions.txt").write_text("\n".join([QUESTIONS[0], "", QUESTIONS[1]]))
    return folder


def test_every_question_about_every_image(pictures: Path, tmp_path: Path) -> None:
    command = ["predict", NAME, "--images", f"{pictures}/*.png", "--questions", pictures / "questions.txt", "--out"]
    assert "6 answers" in run_bcn(*command, tmp_path / "answers.csv")
    run_bcn(*command, tmp_path / "answers.jsonl")
    with open(tmp_path / "answers.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    lines = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    assert [{key: str(value) for key, value in line.items()} for line in lines] == rows
    asked = bcn.load(NAME).ask([pictures / f"{number}.png" for number in range(3)], QUESTIONS)
    assert [len(answers) for answers in asked] == [2, 2, 2]
    for row, answer in zip(lines, [answer for answers in asked for answer in answers], strict=True):
        assert row["answer"] == answer.answer
        assert row["probability"] == pytest.approx(answer.probability, abs=1e-5)
        assert (row["runner_up"], row["runner_up_probability"]) == pytest.approx(answer.others[0], abs=1e-5)
        assert row["probability"] >= row["runner_up_probability"]


def test_questions_of_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BCN_CACHE", str(tmp_path / "cache"))
    mine = own_layout(tmp_path / "mine", 12)
    run = bcn.train(mine, scale="smoke", start="none", runs=tmp_path / "runs", threads=1)
    lines = [json.loads(line) for line in (mine / "questions.jsonl").read_text().splitlines()]
    run_bcn("predict", run.path, "--data", mine, "--out", tmp_path / "all.jsonl")
    answered = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    assert [(row["image"], row["question"]) for row in answered] == [
        (str(mine / line["image"]), line["question"]) for line in lines
    ]
    run_bcn("predict", run.path, "--data", mine, "--split", "val", "--out", tmp_path / "val.jsonl")
    validated = [json.loads(line) for line in (tmp_path / "val.jsonl").read_text().splitlines()]
    assert 0 < len(validated) < len(answered)
    assert all(row in answered for row in validated)


def test_what_predict_refuses(pictures: Path, tmp_path: Path) -> None:
    questions = ["--questions", pictures / "questions.txt"]
    for arguments, match in (
        ([], "give --data FOLDER, or --images"),
        (["--images", f"{pictures}/*.gif", *questions], "no file has such a name"),
        (["--images", f"{pictures}/*.png", "--questions", pictures / "none.txt"], "cannot read .*none.txt"),
        (["--images", f"{pictures}/*.png", *questions, "--out", tmp_path / "a.xls"], "ends in .csv or .jsonl"),
        (["--data", pictures], "holds neither questions.jsonl nor"),
    ):
        with pytest.raises(BcnError, match=match):
            run_bcn("predict", NAME, *arguments)


def test_several_images_are_asked_by_the_command(pictures: Path, tmp_path: Path) -> None:
    weights = ["--weights", NAME]
    first, second = pictures / "0.png", pictures / "1.png"
    printed = run_bcn("ask", first, second, *QUESTIONS, *weights).splitlines()
    assert [line for line in printed if line.endswith(".png")] == [str(first), str(second)]
    assert len(printed) == 2 + 2 * 2 * len(QUESTIONS)
    content = json.loads(run_bcn("ask", first, second, *QUESTIONS, *weights, "--json"))
    assert [each["image"] for each in content] == [str(first), str(second)]
    assert content[1] == json.loads(run_bcn("ask", second, *QUESTIONS, *weights, "--json"))
    for arguments, match in (
        ([first, second], "no question follows"),
        ([first, pictures / "none.png", *QUESTIONS], "there is no image .*none.png"),
        ([first, second, *QUESTIONS, "--map", tmp_path / "map.png"], "ask about one at a time"),
    ):
        with pytest.raises(BcnError, match=match):
            run_bcn("ask", *arguments, *weights)
