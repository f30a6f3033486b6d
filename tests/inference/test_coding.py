"""Weights of Sort-of-CLEVR v2 wherever those of v1 are used: asked in English, in a file, from the command line."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.command import exit_code, run_bcn
from helpers.small_weights import scene_run, scene_v2_run
from PIL import Image

import bcn
from bcn.data.registry import open_dataset
from bcn.data.sort_of_clevr_v2.legacy import LEGACY_TERNARY
from bcn.errors import BcnError
from bcn.inference import demo
from bcn.inference.coding import CODINGS, find_coding
from bcn.inference.reasoner import Reasoner

ROUNDS = "multirn-rounds-wild-hour"
"""a model without a BCN"""


def first_scene() -> tuple[np.ndarray, list[str], torch.Tensor]:
    """An image of the varied stream, its questions in English, and as numbers."""
    dataset = open_dataset("sort-of-clevr-v2-stream-varied", "train", images=1)
    batch = dataset[[0]]
    assert batch.question is not None
    asked = batch.question[0, batch.answer[0] >= 0]
    return batch.image[0].permute(1, 2, 0).numpy(), [dataset.to_sentence(each) for each in asked], asked


@pytest.mark.parametrize("row", ["multirn-h-wild", ROUNDS])
def test_every_question_of_v2_is_answered_as_the_model_does(row: str) -> None:
    reasoner = bcn.load(scene_v2_run(row))
    image, sentences, question_QD = first_scene()
    assert {sentence.split(" ")[0] for sentence in sentences} == {"What", "Is", "How"}
    pixels = torch.from_numpy(image).permute(2, 0, 1)[None] / 255
    with torch.inference_mode():
        expected_QA = reasoner.model(pixels, question_QD[None])[0].softmax(-1)
    for answer, sentence, expected_A in zip(reasoner.ask(image, sentences), sentences, expected_QA, strict=True):
        assert answer.question == sentence
        assert answer.answer == reasoner.answers[int(expected_A.argmax())]
        assert answer.probability == pytest.approx(float(expected_A.max()), abs=1e-5)
    assert reasoner.has_bcn is (row != ROUNDS)


def test_weights_are_asked_in_the_words_of_their_own_data() -> None:
    v1, v2 = bcn.load(scene_run()), bcn.load(scene_v2_run())
    ternary = "Is there an object on the line between the red one and the blue one?"
    assert v2.encode(ternary).texts == [ternary]
    with pytest.raises(BcnError, match="ask about one colour"):
        v1.encode(ternary)
    for reasoner in (v1, v2):
        assert reasoner.encode("is grey left").texts == ["Is the gray object on the left?"]


@pytest.mark.parametrize("coding", CODINGS, ids=lambda coding: str(coding.data))
def test_a_question_is_its_kind_and_names(coding: Any) -> None:
    dataset = open_dataset(coding.fresh, "train", images=20)
    batch = dataset[np.arange(20)]
    assert batch.question is not None
    assert batch.kind is not None
    assert tuple(dataset.kinds) == coding.kinds
    there = batch.answer >= 0
    for bits, kind in zip(batch.question[there].numpy(), batch.kind[there].tolist(), strict=True):
        said, names = coding.split(bits)
        assert said == coding.kinds[kind]
        assert len(names) == 1 + (kind >= 6)
        assert np.array_equal(coding.bits[coding.number(kind, *names)], bits)


def test_other_codings_take_no_sentences() -> None:
    """The public generator's ternary questions have v2's kinds in other bits."""
    model = bcn.create_model("sort-of-clevr/multirn", question_dim=18)
    dataset = open_dataset(LEGACY_TERNARY, "test", images=1)
    description = bcn.load(scene_run()).description | {"kinds": list(dataset.kinds), "data": LEGACY_TERNARY}
    assert find_coding(model, description) is None
    with pytest.raises(BcnError, match="weights for the questions of sort-of-clevr-v1 and sort-of-clevr-v2 do"):
        Reasoner("legacy", model, description).ask(Image.new("RGB", (75, 75)), "is red left")


def test_v2_at_the_command_line(tmp_path: Path) -> None:
    image, _, _ = first_scene()
    Image.fromarray(image).save(tmp_path / "scene.png")
    question = "how many objects are in the box between the red square and grey"
    said = json.loads(run_bcn("ask", tmp_path / "scene.png", question, "--weights", scene_v2_run(), "--json"))
    (answer,) = said["answers"]
    assert answer["question"] == "How many objects are in the box between the red square and the gray one?"
    (tmp_path / "questions.txt").write_text(f"{question}\nis red left\n")
    run_bcn(
        *("predict", scene_v2_run(), "--images", tmp_path / "*.png", "--questions", tmp_path / "questions.txt"),
        *("--out", tmp_path / "answers.csv"),
    )
    rows = list(csv.DictReader((tmp_path / "answers.csv").open()))
    assert [row["question"] for row in rows] == [question, "is red left"]
    assert rows[0]["answer"] == answer["answer"]
    metrics = json.loads(run_bcn("eval", scene_v2_run(), "--on", "sort-of-clevr-v2-9-objects", "--images", 3, "--json"))
    assert metrics["data"] == "sort-of-clevr-v2-9-objects"
    assert metrics["metrics"]["ternary"]["total"] > 10
    assert exit_code("eval", scene_v2_run(), "--on", "sort-of-clevr-v1", "--images", 1) == 2


@pytest.mark.parametrize("row", ["multirn-h-wild", ROUNDS])
def test_the_demo_of_v2(
    row: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "SCENES", 5)
    demo.demo(tmp_path, published={"relational": 96.7}, weights=str(scene_v2_run(row)))
    said = capsys.readouterr().out
    dataset = open_dataset("sort-of-clevr-v2", "test", images=5, seed=2018, questions="all")
    columns = {line.split()[0]: line.split() for line in said.splitlines() if line}
    assert {"all", "unary", "binary", "ternary", *dataset.kinds} <= set(columns)
    assert "paper" not in said
    assert ("activation maps" in said) is (row != ROUNDS)
    with Image.open(tmp_path / "answers.png") as picture:
        assert picture.width == (1020 if row != ROUNDS else 860)
