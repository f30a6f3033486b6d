"""Answers to questions that have none in their file, and the transfer to original images."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.command import invoke_bcn, run_bcn
from helpers.small_weights import digit_weights
from helpers.squares import clevr_layout
from PIL import Image

from bcn import BcnError, create_model
from bcn.data.clevr_like.questions import make_questions
from bcn.data.clevr_like.scene import make_scene
from bcn.data.vqa.clevr import ANSWERS, FAMILIES
from bcn.data.vqa.dataset import CLEVR_PREPROCESSING
from bcn.data.vqa.load import open_questions
from bcn.data.vqa.vocabulary import tokenize
from bcn.io import data_root
from bcn.paper.tables import find_recipe
from bcn.training.description import describe_weights
from bcn.training.environment import commit, default_threads
from bcn.training.weights import write_weights


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BCN_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def clevr(tmp_path: Path) -> Path:
    """Scenes of ours under noise instead of pictures; the questions of `test` without answers, in another order.

    Their numbers fall, and two questions each have the same.
    """
    noise = np.random.default_rng(0)
    for split, images in (("train", 3), ("test", 3)):
        asked = []
        for index in range(images):
            scene = make_scene(index, split=split)
            asked += make_questions(scene, count=12 if index == 1 else 4)
            path = tmp_path / "set" / "images" / split / scene["image_filename"]
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(noise.integers(0, 256, (128, 128, 3), np.uint8)).save(path)
        if split == "test":
            asked = [{key: entry[key] for key in ("image_filename", "question")} for entry in asked[::-1]]
            asked = [entry | {"question_index": 100 - place // 2} for place, entry in enumerate(asked)]
        path = tmp_path / "set" / "questions" / f"CLEVR_{split}_questions.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"info": {"version": "clevr-like-v1"}, "questions": asked}))
    return tmp_path / "set"


def weights_of(model: str, directory: Path, path: Path) -> tuple[Path, torch.nn.Module]:
    """Random weights, as a run would have written them."""
    dataset = open_questions(directory, "train")
    arguments = {"vocab_size": len(dataset.vocabulary), "num_answers": len(dataset.answers)}
    torch.manual_seed(2)
    built = create_model(model, **arguments).eval()
    for parameter in built.parameters():
        parameter.data.mul_(3)
    recipe = replace(find_recipe("table4/multirn", "smoke"), model=model)
    description = describe_weights(recipe, dataset, arguments=arguments, seed=0, epoch=1)
    write_weights(path, built.state_dict(), description)
    return path, built


@pytest.mark.parametrize(("name", "ending"), [("clevr/q-type", "txt"), ("clevr/multirn", "json")])
def test_questions_without_answers_are_answered_into_a_file(
    name: str, ending: str, clevr: Path, tmp_path: Path
) -> None:
    """The answers of the one hang on the question, those of the other, while its weights are random, on the image."""
    path, model = weights_of(name, clevr, tmp_path / "w.safetensors")
    out = tmp_path / f"answers.{ending}"
    said = invoke_bcn("clevr", "answer", path, clevr, "--out", out).output
    assert f"{out}: 20 answers" in said.replace("\n", "")

    learned = json.loads((clevr / "questions" / "CLEVR_train_questions.json").read_text())["questions"]
    words = ["", "", *sorted({word for entry in learned for word in tokenize(entry["question"])})]
    expected = []
    for entry in json.loads((clevr / "questions" / "CLEVR_test_questions.json").read_text())["questions"]:
        pixels = np.asarray(Image.open(clevr / "images" / "test" / entry["image_filename"])).transpose(2, 0, 1).copy()
        number = [words.index(word) if word in words else 1 for word in tokenize(entry["question"])]
        with torch.inference_mode():
            logits = model(CLEVR_PREPROCESSING(torch.from_numpy(pixels)[None]), torch.tensor([number]))
        expected.append(ANSWERS[int(logits.argmax())])
    assert len(set(expected)) > 1
    if ending == "txt":
        assert out.read_text() == "".join(f"{answer}\n" for answer in expected)
    else:
        written = json.loads(out.read_text())
        assert written == [
            {"question_index": 100 - place // 2, "answer": answer} for place, answer in enumerate(expected)
        ]


def test_what_cannot_be_answered_is_said(clevr: Path, tmp_path: Path) -> None:
    path, _ = weights_of("clevr/lstm", clevr, tmp_path / "w.safetensors")
    with pytest.raises(BcnError, match=r"ends in \.txt"):
        run_bcn("clevr", "answer", path, clevr, "--out", "a.csv")
    with pytest.raises(BcnError, match="has no split 'dev'"):
        run_bcn("clevr", "answer", path, clevr, "--split", "dev")
    with pytest.raises(BcnError, match="not asked in words"):
        run_bcn("clevr", "answer", digit_weights(), clevr)
    with pytest.raises(BcnError):
        run_bcn("clevr", "answer", tmp_path / "none", clevr)


def test_transfer_to_images_that_are_not_there(clevr: Path, tmp_path: Path) -> None:
    path, _ = weights_of("clevr/lstm", clevr, tmp_path / "w.safetensors")
    with pytest.raises(BcnError, match=r"scenes/CLEVR_val_scenes\.json"):
        run_bcn("clevr", "transfer", path, "--data", tmp_path)


def test_our_own_pictures_are_not_called_original(clevr: Path, tmp_path: Path) -> None:
    path, _ = weights_of("clevr/lstm", clevr, tmp_path / "w.safetensors")
    scenes = clevr / "scenes" / "CLEVR_train_scenes.json"
    scenes.parent.mkdir()
    scenes.write_text(json.dumps({"info": {"version": "clevr-like-v1"}, "scenes": [make_scene(0)]}))
    with pytest.raises(BcnError, match="is of clevr-like-v1, not of original images"):
        run_bcn("clevr", "transfer", path, "--data", clevr, "--split", "train")


@pytest.mark.data("clevr")
def test_transfer_to_original_images(clevr: Path, tmp_path: Path) -> None:
    path, _ = weights_of("clevr/multirn-h", clevr, tmp_path / "w.safetensors")
    run = ["clevr", "transfer", path, "--data", data_root(), "--questions", 12]
    said = json.loads(run_bcn(*run, "--json"))
    assert (said["images"], said["model"], said["split"]) == (10, "clevr/multirn-h", "val")
    assert (said["seed"], said["threads"], said["commit"]) == (0, default_threads(), commit())
    figures = said["metrics"]
    assert figures["all"]["total"] == 120
    assert sum(figures[family]["total"] for family in FAMILIES if family in figures) == 120
    low, high = figures["all"]["interval"]
    assert low <= figures["all"]["accuracy"] <= high
    assert said["data"] == "clevr-transfer-v1"  # which it says it was trained on
    assert "on 10 original images of val (clevr-transfer-v2)" in run_bcn(*run, "--grammar", "clevr-like-v2")


def test_activation_maps_of_clevr(clevr: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figure 8: every image with its map below it."""
    pytest.importorskip("matplotlib")
    from bcn.paper.figures import draw_figure

    monkeypatch.setenv("BCN_DATA", str(clevr))
    path, _ = weights_of("clevr/multirn-h", clevr, tmp_path / "w.safetensors")
    figure = draw_figure("activation-clevr", weights=path, results=tmp_path)
    dataset = open_questions(clevr, "test")
    assert sum(bool(axis.get_images()) for axis in figure.axes) == len(dataset)
    maps = [np.asarray(mesh.get_array()) for axis in figure.axes for mesh in axis.collections]
    assert [array.shape for array in maps] == [(16, 16)] * len(dataset)
    assert all(0 < array.sum() <= 256 for array in maps)
    blind, _ = weights_of("clevr/lstm", clevr, tmp_path / "blind.safetensors")
    with pytest.raises(BcnError, match="without a BCN"):
        draw_figure("activation-clevr", weights=blind, results=tmp_path)


def test_shipped_weights_are_evaluated_on_clevr_as_published(tmp_path: Path) -> None:
    """By its own name for the split, and without its training questions."""
    clevr = clevr_layout(tmp_path / "unpacked", {"val": 2})
    for split in ("val", "test"):  # the answers of CLEVR's test split are withheld: everyone reports val
        said = json.loads(run_bcn("eval", "clevr/multirn-h", "--data", clevr, "--split", split, "--json"))
        assert (said["data"], said["split"]) == ("clevr-v1.0", "val")
        assert said["metrics"]["all"]["total"] > 0
    out = tmp_path / "answers.txt"
    run_bcn("clevr", "answer", "clevr/multirn-h", clevr, "--split", "val", "--out", out)
    assert len(out.read_text().splitlines()) == said["metrics"]["all"]["total"]


def test_unknown_words_are_replaced_or_named(tmp_path: Path) -> None:
    Image.new("RGB", (48, 32), (120, 120, 120)).save(tmp_path / "gray.png")
    ask = ["ask", tmp_path / "gray.png", "What colour is the grey dog?", "--weights", "clevr/multirn-h"]
    said = run_bcn(*ask)
    assert "what color is the gray ?" in said
    assert "clevr/multirn-h was not trained on: dog" in said
    (answer,) = json.loads(run_bcn(*ask, "--json"))["answers"]
    assert answer["unknown"] == ["dog"]
    assert "not trained on" not in run_bcn(*ask[:2], "What colour is the grey ball?", *ask[3:])
