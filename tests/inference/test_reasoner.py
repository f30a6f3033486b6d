"""Asking: images in every form, questions in English, what is found where, and what is refused."""

import hashlib
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.command import exit_code, finish, run_bcn, start_python
from helpers.records import make_metric
from helpers.small_weights import digit_weights, scene_run, word_weights
from PIL import Image

import bcn
import bcn.inference.shipped
from bcn.data.images import fit, read_image
from bcn.data.sort_of_clevr import KINDS, make_sort_of_clevr
from bcn.errors import BcnError
from bcn.inference.broadcast import Broadcast, forward_with_broadcast, pool
from bcn.inference.overlay import overlay, write_image
from bcn.inference.shipped import list_weights
from bcn.layers.rounds import find_rounds
from bcn.training.weights import load_model, write_weights

QUESTIONS = ["what is the SHAPE of the red one", "How many things have the same shape as the grey object?"]


@pytest.fixture(scope="module")
def scene() -> np.ndarray:
    return make_sort_of_clevr("sort-of-clevr-v1", "test", images=1)[[0]].image[0].permute(1, 2, 0).numpy()


@pytest.fixture(scope="module")
def reasoner() -> bcn.Reasoner:
    return bcn.load(scene_run())


def digit(left: int, top: int, width: int = 30, height: int = 40, size: tuple[int, int] = (128, 128)) -> Image.Image:
    image = Image.new("L", size)
    image.paste(255, (left, top, left + width, top + height))
    return image


def test_answers_are_those_of_the_model(reasoner: bcn.Reasoner, scene: np.ndarray) -> None:
    dataset = make_sort_of_clevr("sort-of-clevr-v1", "test", images=1, questions="all")
    batch = dataset[[0]]
    with torch.inference_mode():
        expected = reasoner.model(dataset.preprocessing(batch.image), batch.question)[0].softmax(-1)
    found = reasoner.ask(scene, QUESTIONS)
    for answer, number in zip(found, (0, 6 * KINDS.index("count") + 4), strict=True):
        shares = dict([(answer.answer, answer.probability), *answer.others])
        for name, share in zip(dataset.answers, expected[number].tolist(), strict=True):
            assert shares[name] == pytest.approx(share, abs=1e-5)
        assert answer.probability == max(shares.values())
        assert [share for _, share in answer.others] == sorted((s for _, s in answer.others), reverse=True)
    assert found[0].question == "What is the shape of the red object?"
    assert reasoner.ask(scene, []) == []


def test_an_image_may_come_in_any_form(reasoner: bcn.Reasoner, scene: np.ndarray, tmp_path: Path) -> None:
    picture = Image.fromarray(scene)
    enlarged = picture.resize((300, 300), Image.Resampling.NEAREST)
    enlarged.save(tmp_path / "scene.png")
    clear = picture.convert("RGBA")
    clear.putalpha(Image.fromarray((255 * (scene != 255).any(axis=2)).astype(np.uint8)))
    palette = picture.convert("P", palette=Image.Palette.ADAPTIVE)
    expected = reasoner.ask(scene, QUESTIONS)
    for given in (picture, enlarged, tmp_path / "scene.png", str(tmp_path / "scene.png"), clear, palette):
        assert reasoner.ask(given, QUESTIONS) == expected
    assert np.array_equal(fit(read_image(enlarged), (3, 75, 75)), scene.transpose(2, 0, 1))


def test_images_keep_their_proportions_and_digits_are_light() -> None:
    image = digit(0, 0, size=(200, 100))
    assert fit(image, (1, 128, 128)).shape == (1, 128, 256)
    dark = Image.eval(image, lambda pixel: 255 - pixel)
    assert np.array_equal(fit(dark, (1, 128, 128)), fit(image, (1, 128, 128)))
    assert fit(image, (3, 75, 75)).shape == (3, 75, 150)


@pytest.mark.parametrize(("left", "top"), [(4, 4), (90, 10), (50, 80)])
def test_a_digit_is_found_where_it_is(left: int, top: int) -> None:
    found = bcn.load(digit_weights()).find(digit(left, top))
    assert found.answer == "7"
    assert found.centre == pytest.approx(((left + 15) / 128, (top + 20) / 128), abs=0.04)
    assert sum([found.probability, *(share for _, share in found.others)]) == pytest.approx(1, abs=1e-5)


def test_what_is_broadcast_comes_from_the_ink() -> None:
    broadcast = bcn.load(digit_weights()).broadcast(digit(80, 40))
    assert broadcast.size == (32, 32)
    rows, columns = np.nonzero(broadcast.counts())
    assert broadcast.counts().sum() == 4
    assert rows.min() >= 9 and rows.max() <= 20  # noqa: PT018
    assert columns.min() >= 19 and columns.max() <= 28  # noqa: PT018


@pytest.mark.parametrize("name", list_weights())
def test_answers_and_broadcast_come_from_one_pass(name: str) -> None:
    """Bit for bit what the CNN and the BCN give by themselves, and the logits that the model gives alone."""
    loaded = bcn.load(name)
    image = np.random.default_rng(0).integers(0, 256, (128, 128, 3), np.uint8)
    questions = loaded.encode(["what shape is the red cube?"]) if loaded.takes_words else None
    if loaded.takes_questions and questions is None:
        questions = loaded.encode(QUESTIONS)
    answers, broadcast = loaded.answer_with_broadcast(image, questions)
    model: Any = loaded.model
    with torch.inference_mode():
        pixels = loaded.pixels(image)
        asked = () if questions is None else (torch.from_numpy(questions.numbers_QD)[None].to(loaded.question_dtype),)
        output = model(pixels, *asked)
        logits = output[0] if isinstance(output, tuple) else output
        if broadcast is None or model.broadcast is None:
            assert (broadcast is None) == (find_rounds(model) is None)
        else:
            value, position = model.broadcast.pooled(model.features(pixels))
            assert np.array_equal(broadcast.value, value[0].numpy())
            assert np.array_equal(broadcast.position, position[0].numpy())
    for answer, probability in zip(answers, logits.flatten(0, -2).softmax(-1), strict=True):
        ranked = dict([(answer.answer, answer.probability), *answer.others])
        assert [ranked[each] for each in loaded.answers] == probability.tolist()


def test_broadcasting_after_asking_has_a_map_for_its_questions() -> None:
    """The last round's vectors of all questions; the layers are applied once more here, object by object."""
    torch.manual_seed(0)
    model: Any = bcn.create_model("sort-of-clevr/multirn-rounds").eval()
    image, question = torch.rand(1, 3, 75, 75), torch.randint(2, (1, 3, 11)).float()
    said: list[torch.Tensor] = []

    def visit(layer: Any, sources: dict[str, torch.Tensor]) -> None:
        if list(sources) == ["hidden"]:
            said.append(torch.einsum("qnc,kc->qnk", sources["hidden"][0], layer.weight.flatten(1)) + layer.bias)

    with torch.inference_mode():
        output = forward_with_broadcast(model, image, question)
        torch.testing.assert_close(output.logits, model(image, question))
        model.relation(model.features(image), question, visit=visit)
    last_round = said[-2]  # said[-1] is g's
    assert output.pooled is not None
    torch.testing.assert_close(output.pooled.value_BK[0], last_round.amax(dim=1).flatten())
    assert torch.equal(output.pooled.position_BK[0], last_round.argmax(dim=1).flatten())
    assert Broadcast.of(output.pooled).counts().sum() == 3 * 96
    assert "pooled" not in vars(model.relation)


def test_a_map_of_a_question(tmp_path: Path) -> None:
    """Of shipped weights that broadcast after asking, from Python and at the command line."""
    drawn, asked = bcn.load("drawn/multirn-rounds"), ["How many things are there?", "What is red?"]
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (90, 70, 3), np.uint8))
    one, both = drawn.broadcast(picture, asked[0]), drawn.broadcast(picture, asked)
    assert (one.counts().sum(), both.counts().sum()) == (128, 256)
    assert np.array_equal(both.position[:128], one.position)
    with pytest.raises(BcnError, match="broadcasts after asking: give a question"):
        drawn.broadcast(picture)
    picture.save(tmp_path / "scene.png")
    place = ["--weights", "drawn/multirn-rounds", "--map", str(tmp_path / "map.png")]
    assert run_bcn("ask", tmp_path / "scene.png", asked[0], *place)
    assert (tmp_path / "map.png").exists()


def test_the_map_is_laid_over_the_image() -> None:
    """Outlines around positions, at the edges that are given; all else keeps its colour."""
    counts = np.zeros((2, 3), int)
    counts[1, 2], counts[0, 0] = 16, 1
    edges = np.array([0, 0.6, 1]), np.array([0, 0.25, 0.5, 1])
    seen = np.asarray(overlay(Image.new("RGB", (30, 20), "lime"), counts, edges)).astype(int)
    assert seen.shape[0] >= 450
    magenta = np.argwhere((seen[..., 0] > 150) & (seen[..., 1] < 100)) / seen.shape[:2]
    large = magenta[magenta[:, 1] > 0.5]
    assert (large.min(0) + large.max(0)) / 2 == pytest.approx([0.8, 0.75], abs=0.01), "in the middle of its cell"
    small = magenta[magenta[:, 1] < 0.5]
    assert (small.min(0) + small.max(0)) / 2 == pytest.approx([0.3, 0.125], abs=0.01)
    assert (np.ptp(large, axis=0) > np.ptp(small, axis=0)).all()
    assert (seen[int(0.8 * seen.shape[0]), int(0.75 * seen.shape[1])] == (0, 255, 0)).all(), "an outline"
    marked = np.asarray(overlay(Image.new("L", (30, 20)), counts, edges, centre=(0.25, 0.5)))
    assert (marked[seen.shape[0] // 2, seen.shape[1] // 4] == 255).all()


def test_ask_at_the_command_line(scene: np.ndarray, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Image.fromarray(scene).save(tmp_path / "scene.png")
    arguments = [str(tmp_path / "scene.png"), *QUESTIONS, "--weights", str(scene_run())]
    assert exit_code("ask", *arguments, "--map", str(tmp_path / "map.png")) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "What is the shape of the red object?"
    assert said[2] == "How many objects have the same shape as the gray one?"
    assert "%" in said[1]
    assert Image.open(tmp_path / "map.png").size == (450, 450)
    assert exit_code("ask", *arguments, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert said[1].strip().startswith(found["answers"][0]["answer"])
    assert len(found["answers"][1]["others"]) == 9


def test_an_image_that_would_become_huge_is_refused() -> None:
    with pytest.raises(BcnError, match="the longer one may have up to 4096"):
        fit(Image.new("RGB", (1, 4096)), (3, 75, 75))
    assert max(overlay(Image.new("RGB", (1000, 1)), np.ones((1, 1)), 2 * (np.array([0, 1]),)).size) <= 4096


def test_what_is_no_image_or_question_is_one_sentence(scene: np.ndarray) -> None:
    reasoner = bcn.load(scene_run())
    no_images: list[Any] = [None, [1, 2], torch.rand(3, 75, 75), b"bytes"]
    no_questions: list[Any] = [None, [3], b"is red left?", 5]
    for given in no_images:
        with pytest.raises(BcnError, match="is no image: accepted are a path"):
            reasoner.ask(given, "is red left?")
    for asked in no_questions:
        with pytest.raises(BcnError, match="accepted are a sentence or a list of them"):
            reasoner.ask(scene, asked)
    with pytest.raises(BcnError, match="is no name of weights"):
        bcn.load(None)  # type: ignore[arg-type]
    question = reasoner.probabilities(scene, np.eye(11)[:3])
    assert question.shape == (3, 10)


@pytest.mark.parametrize("key", ["answers", "kinds", "preprocessing", "arguments"])
def test_weights_that_do_not_say_enough_are_one_sentence(key: str, tmp_path: Path) -> None:
    model, description = load_model(scene_run())
    said = {name: value for name, value in description.items() if name != key}
    write_weights(tmp_path / "w.safetensors", model.state_dict(), said)
    with pytest.raises(BcnError, match="give weights that `bcn train` wrote"):
        bcn.load(tmp_path / "w.safetensors")


def test_an_image_from_standard_input(
    scene: np.ndarray, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    buffer = io.BytesIO()
    Image.fromarray(scene).save(buffer, "PNG")
    for content, code in ((buffer.getvalue(), 0), (b"no image", 2), (buffer.getvalue()[:60], 2)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert exit_code("ask", "-", "is red left?", "--weights", str(scene_run())) == code
        said = capsys.readouterr()
        assert ("Is the red object on the left?" in said.out) == (code == 0)
        assert ("standard input is not an image" in said.err) == (code == 2)


def test_find_at_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    digit(80, 40).save(tmp_path / "digit.png")
    arguments = ["find", str(tmp_path / "digit.png"), "--weights", str(digit_weights())]
    assert exit_code(*arguments, "--map", str(tmp_path / "map.jpg")) == 0
    said = capsys.readouterr().out
    assert said.startswith("7 ")
    assert "of 128x128" in said
    assert Image.open(tmp_path / "map.jpg").format == "JPEG"
    assert exit_code(*arguments, "--json") == 0
    assert json.loads(capsys.readouterr().out)["centre"] == pytest.approx([95 / 128, 60 / 128], abs=0.04)


def test_weights_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bcn.inference.shipped, "WEIGHTS", tmp_path)
    with pytest.raises(BcnError, match="none are shipped with this version"):
        bcn.load("scaled-mnist/bcn")
    shutil.copy(digit_weights(), tmp_path / "digits.safetensors")
    content = (tmp_path / "digits.safetensors").read_bytes()
    origin = {"data": "scaled-mnist-v1", "recipe": "table1/bcn", "scale": "cpu", "seed": 0, "epoch": 1}

    metrics = {"all": make_metric(39, 40)}
    entry = {
        "file": "digits.safetensors",
        "sha256": hashlib.sha256(content).hexdigest(),
        "metrics": metrics,
        **origin,
    }
    (tmp_path / "index.json").write_text(json.dumps({"scaled-mnist/bcn": entry}))
    assert bcn.load("scaled-mnist/bcn").find(digit(4, 4)).answer == "7"
    with pytest.raises(BcnError, match="did you mean 'scaled-mnist/bcn'"):
        bcn.load("scaled-mnist/bnc")
    with pytest.raises(
        BcnError, match=r"no weights of scaled-mnist/baseline are shipped, only of scaled-mnist/bcn: train"
    ):
        bcn.load("scaled-mnist/baseline")
    (tmp_path / "digits.safetensors").write_bytes(content[:-1])
    with pytest.raises(BcnError, match="missing or damaged"):
        bcn.load("scaled-mnist/bcn")


def test_photographs_of_any_size_where_the_shape_is_not_kept() -> None:
    large = Image.new("RGB", (5000, 30), "red")
    assert bcn.load(word_weights()).pixels(large).shape == (1, 3, 128, 128)


def test_what_is_refused(reasoner: bcn.Reasoner, scene: np.ndarray, tmp_path: Path) -> None:
    (tmp_path / "text.png").write_text("text")
    finder = bcn.load(digit_weights())
    refused: dict[str, Callable[[], object]] = {
        "ask about one colour": lambda: reasoner.ask(scene, ["is red left?", "is it raining?"]),
        "takes no questions": lambda: finder.ask(scene, "is red left?"),
        "answers questions": lambda: reasoner.find(scene),
        "there is no image": lambda: reasoner.ask(tmp_path / "none.png", "is red left?"),
        "cannot be read as an image": lambda: reasoner.ask(tmp_path / "text.png", "is red left?"),
        "is no image": lambda: reasoner.ask(scene / 255, "is red left?"),
        "each side may have 1 to 4096, so make it smaller": lambda: finder.find(np.zeros((5000, 10), np.uint8)),
        "has no BCN": lambda: bcn.load(digit_weights("scaled-mnist/baseline")).broadcast(scene),
        "does not end like an image": lambda: write_image(Image.new("L", (5, 5)), tmp_path / "map.txt"),
    }
    for message, call in refused.items():
        with pytest.raises(BcnError, match=message):
            call()


def test_asking_does_not_load_the_training_loop(tmp_path: Path) -> None:
    """Of the room of training, `bcn ask` needs weights files and the forward pass, and neither loop nor processes."""
    Image.new("RGB", (75, 75)).save(tmp_path / "scene.png")
    program = (
        "import sys; sys.argv = ['bcn', 'ask', sys.argv[1], 'is red left?']\n"
        "from bcn.cli import main\n"
        "try: main()\n"
        "except SystemExit as exit: assert not exit.code\n"
        "print(*(name for name in sys.modules if name.startswith('bcn.training.')))"
    )
    arguments = [sys.executable, "-c", program, str(tmp_path / "scene.png")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    loaded = {name.removeprefix("bcn.training.") for name in done.stdout.splitlines()[-1].split()}
    assert {"forward", "weights"} <= loaded
    assert not loaded & {"auxiliary", "checkpoint", "distributed", "loop", "losses", "optim", "splits", "state"}


def test_every_channel_carries_something_without_the_last_relu() -> None:
    torch.manual_seed(0)
    for final_relu in (True, False):
        model = bcn.create_model("sort-of-clevr/multirn-h", final_relu=final_relu).eval()
        torch.nn.init.constant_(model.broadcast.k[-1].bias, -99.0)  # type: ignore[union-attr, index]
        with torch.inference_mode():
            broadcast = Broadcast.of(pool(model, torch.rand(1, 3, 75, 75)))
        assert broadcast.counts().sum() == (0 if final_relu else 256)
        assert (np.array(broadcast.to_dict()["position"]) >= 0).sum() == (0 if final_relu else 256)


def test_the_first_answer_imports_no_compiler() -> None:
    """torch._dynamo and sympy take a second and 85 MB, and answering needs neither."""
    code = """if True:
        import sys, bcn, numpy as np
        image = np.zeros((75, 75, 3), np.uint8)
        bcn.load("sort-of-clevr/multirn-h").ask(image, "is red left")
        bcn.load("scaled-mnist/bcn").find(image)
        print([name for name in ("torch._dynamo", "sympy") if name in sys.modules])"""
    assert finish(start_python("-c", code))[0].strip() == "[]"
