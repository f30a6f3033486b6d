"""What `bcn data check` says of a folder of one's own before training, and of images in which nothing can be seen."""

import json
from pathlib import Path

import pytest
from helpers.command import invoke_bcn
from helpers.squares import draw
from PIL import Image

from bcn.data.check import check_directory
from bcn.data.vqa.check import describe_questions


def write(folder: Path, lines: list[tuple[str, str, str, str]]) -> Path:
    """Lines of split, image, question and answer."""
    entries = [dict(zip(("split", "image", "question", "answer", "kind"), (*line, "k"), strict=True)) for line in lines]
    (folder / "questions.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return folder


def test_amounts_answers_and_baselines_are_said(tmp_path: Path) -> None:
    train = [("train", "a.png", "How many?", "1")] * 2 + [("train", "a.png", "What colour?", "red")] * 3
    train += [("train", "a.png", "What colour?", "blue")]
    val = [("val", "b.png", "how many", "1"), ("val", "b.png", "what colour", "red"), ("val", "b.png", "why", "red")]
    described = describe_questions(write(tmp_path, [*train, *val, ("val", "b.png", "who", "2")]))
    assert described == [
        "train: 1 images, 6 questions (k 6)",
        "train: 3 answers, of which red 50 %, 1 33 %, blue 17 %",
        "val: 1 images, 4 questions (k 4)",
        "val: 3 answers, of which red 50 %, 1 25 %, 2 25 %",
        "val: always the most frequent answer is right for 50.0 %, that of the same question in training for 75.0 %: "
        "a model has to beat both",
    ]


def test_contradictions_are_problems(tmp_path: Path) -> None:
    draw(tmp_path / "a.png", "red", 2, 0)
    lines = [("train", "a.png", "What colour?", "red"), ("train", "a.png", "what COLOUR", "green")]
    problems = check_directory(write(tmp_path, lines))
    assert "1 questions of train contradict others: a.png: what colour? green / red; give each one answer" in problems


@pytest.mark.parametrize(("size", "doubt"), [((2, 2), "it has only 2x2 pixels"), ((75, 75), "it is blank")])
def test_an_answer_about_nothing_comes_with_a_warning(tmp_path: Path, size: tuple[int, int], doubt: str) -> None:
    Image.new("RGB", size, "white").save(tmp_path / "a.png")
    said = invoke_bcn("ask", tmp_path / "a.png", "is the red object on the left?").stderr
    assert said == f"bcn: {tmp_path / 'a.png'}: {doubt}, so answers about it mean nothing\n"
