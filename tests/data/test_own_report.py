"""What `bcn data check` says of a folder of one's own before training, and of images in which nothing can be seen."""

import json
from pathlib import Path

import pytest
from helpers.command import exit_code, finish, invoke_bcn, start_bcn
from helpers.squares import draw
from PIL import Image

import bcn
from bcn.data.check import check_directory
from bcn.data.vqa.check import describe_questions
from bcn.errors import DoubtWarning


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


def test_copies_repetitions_and_blank_images_are_problems(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        draw(tmp_path / name, "red", 2, 0)
    Image.new("RGB", (75, 75), "white").save(tmp_path / "white.png")
    Image.new("RGB", (2, 2)).save(tmp_path / "tiny.png")
    lines = [("train", f"{name}.png", "What colour?", "red") for name in ("a", "a", "b", "white", "tiny")]
    problems = check_directory(write(tmp_path, lines))
    assert "1 questions of train are asked more than once: a.png: what colour?; keep one of each" in problems
    assert "1 images are there more than once: a.png = b.png; keep one of each" in problems
    blank = "tiny.png (it has only 2x2 pixels), white.png (it is blank)"
    assert f"nothing can be seen in 2 images: {blank}; take them out, with their questions" in problems


def test_all_problems_go_into_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    draw(tmp_path / "a.png", "red", 2, 0)
    lines = [("train", "a.png", "What colour?", "red"), *(("train", f"no{n}.png", "Why?", "red") for n in range(40))]
    write(tmp_path, lines)
    assert exit_code("data", "check", tmp_path, "--problems", tmp_path / "problems.txt") == 2
    said = capsys.readouterr().out
    assert "40 images are missing: no0.png, no1.png, no10.png, no11.png, no12.png, ...; bring them" in said
    written = (tmp_path / "problems.txt").read_text()
    assert all(f"    no{n}.png\n" in written for n in range(40))
    assert f"{tmp_path / 'problems.txt'}: {len(written.splitlines())} lines" in said
    assert exit_code("data", "check", tmp_path, "--problems", tmp_path) == 2
    assert capsys.readouterr().out == ""  # refused before the work is done


def test_python_and_predict_warn_of_an_image_about_nothing(tmp_path: Path) -> None:
    Image.new("RGB", (2, 2)).save(tmp_path / "a.png")
    reasoner = bcn.load("sort-of-clevr/multirn")
    with pytest.warns(DoubtWarning, match=r"a\.png: it has only 2x2 pixels, so answers about it mean nothing"):
        reasoner.ask(tmp_path / "a.png", "is red left")
    with pytest.warns(DoubtWarning, match="the image: it is blank"):
        bcn.load("scaled-mnist/bcn").find(Image.new("L", (128, 128)))
    (tmp_path / "asked.txt").write_text("is red left\n")
    order = ["predict", "sort-of-clevr/multirn", "--images", str(tmp_path / "*.png")]
    asked = start_bcn(*order, "--questions", tmp_path / "asked.txt", "--out", tmp_path / "answers.csv")
    _, said = finish(asked)
    assert said == f"bcn: {tmp_path / 'a.png'}: it has only 2x2 pixels, so answers about it mean nothing\n"


@pytest.mark.parametrize(("size", "doubt"), [((2, 2), "it has only 2x2 pixels"), ((75, 75), "it is blank")])
def test_an_answer_about_nothing_comes_with_a_warning(tmp_path: Path, size: tuple[int, int], doubt: str) -> None:
    Image.new("RGB", size, "white").save(tmp_path / "a.png")
    said = invoke_bcn("ask", tmp_path / "a.png", "is the red object on the left?").stderr
    assert said == f"bcn: {tmp_path / 'a.png'}: {doubt}, so answers about it mean nothing\n"
