"""Auxiliary supervision in training: its heads, its loss, and the stages of a run."""

import json
import math
import os
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.annotated_clevr import IMAGES, annotated_clevr
from torch import Tensor, nn

from bcn.data.clevr_like.supervision import open_objects, open_referents
from bcn.data.dataset import IGNORE_INDEX, OUT_OF_VOCABULARY, Batch
from bcn.data.vqa.load import open_questions
from bcn.errors import BcnError
from bcn.layers.relation import MultiRelation
from bcn.models.registry import create_model
from bcn.models.relation_model import QuestionAnswerer, RelationModel
from bcn.paper.estimate import measure
from bcn.paper.tables import find_recipe
from bcn.training.auxiliary import ReferentHead, make_object_head, object_grid, referent_loss, step_losses
from bcn.training.distributed import Ranks
from bcn.training.initial import initialise
from bcn.training.interrupts import Interrupted, Stop
from bcn.training.loop import Trainer, train
from bcn.training.optim.muon import Muon
from bcn.training.optim.schedule import make_optimiser
from bcn.training.recipe import Auxiliary, Data, Optim, Recipe
from bcn.training.run import run_id
from bcn.training.splits import Splits
from bcn.training.state import State
from bcn.training.weights import read_weights


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BCN_CACHE", str(tmp_path / "cache"))
    return annotated_clevr(tmp_path / "clevr-like-v1")


def supervised(referent_epochs: int, answer_epochs: int) -> Recipe:
    """An epoch of object supervision, then of referent supervision, then of referents and answers."""
    recipe = find_recipe("table4/multirn", "smoke")
    return replace(
        recipe,
        optim=replace(recipe.optim, name="muon", momentum=0.9),
        data=Data("clevr-like-v1"),
        batch_size=4,
        epochs=1 + referent_epochs + answer_epochs,
        auxiliary=Auxiliary(1, referent_epochs),
        augment=True,
    )


def make_model(name: str, **arguments: Any) -> tuple[QuestionAnswerer, RelationModel]:
    model = create_model(name, **arguments)
    assert isinstance(model, QuestionAnswerer)
    assert isinstance(model.answer, RelationModel)
    return model, model.answer


MAPS = [("multirn", 8, 8), ("multirn-h", 16, 16), ("multirn-rounds", 8, 16), ("cnn-lstm", 8, 8), ("rn", 8, 8)]
"""rows and columns of objects"""


@pytest.mark.parametrize(("name", "height", "width"), MAPS)
def test_a_referent_head_answers_as_its_model(name: str, height: int, width: int) -> None:
    torch.manual_seed(0)
    model, _ = make_model(f"clevr/{name}", vocab_size=9)
    head = ReferentHead(model, roles=32, objects=height * width).double().eval()
    image, question = torch.rand(2, 3, 128, 128).double(), torch.randint(1, 9, (2, 3, 5))
    point = torch.rand(2, 4, 2).double()
    point[1, 3] = torch.nan
    logits, scores, _, steps = head(image, question, point)
    assert torch.allclose(logits, model(image, question), atol=1e-10)
    channels = {"cnn-lstm": 1, "rn": 1, "multirn-rounds": 4}
    assert scores.shape == (2, 3, 4, channels.get(name, 8), 32)
    assert name == "rn" or (scores < 0).double().mean() > 0.8  # nearly all are negative at the start
    assert (steps is not None) == (name == "multirn-rounds")
    assert steps is None or (steps < 0).double().mean() > 0.8
    alone, same, _, _ = head(image, question, point, answers=False)
    assert alone is None
    assert torch.equal(scores, same)


@pytest.mark.parametrize(("name", "height", "width"), MAPS)
def test_the_score_of_a_point_is_that_of_its_object(name: str, height: int, width: int) -> None:
    torch.manual_seed(0)
    model, _ = make_model(f"clevr/{name}", vocab_size=9)
    head = ReferentHead(model, roles=32, objects=height * width).double().eval()
    image, question = torch.rand(2, 3, 128, 128).double(), torch.randint(1, 9, (2, 3, 5))
    point = torch.rand(2, 4, 2).double()
    _, scores, cell, _ = head(image, question, point)
    x, y = point[0, 2].tolist()
    assert cell[0, 2] == width * int(y * height) + int(x * width)
    side = torch.tensor([width, height])
    moved = point.clone()
    moved[0, 0] = (torch.floor(point[0, 0] * side) + 0.9) / side  # within its object; and another point elsewhere
    moved[0, 1] = (torch.floor(point[0, 1] * side) + side // 2 + 0.5) % side / side
    _, others, _, _ = head(image, question, moved)
    assert torch.equal(others[0, :, 0], scores[0, :, 0])
    assert not torch.allclose(others[0, :, 1], scores[0, :, 1])


def test_multirn_scores_with_what_it_sums() -> None:
    """g of every object, summed, is the input of f."""
    torch.manual_seed(0)
    relation = make_model("clevr/multirn")[1].double().relation
    assert isinstance(relation, MultiRelation)
    map_BCHW, question_BQD = torch.randn(2, 24, 4, 4).double(), torch.randn(2, 3, 256).double()
    each = relation.g_of_objects(map_BCHW, question_BQD, torch.arange(16).expand(2, 16))
    assert torch.allclose(each.relu().sum(2), relation(map_BCHW, question_BQD), atol=1e-10)


def test_the_referent_loss_is_that_of_points_that_are_there() -> None:
    """Three points in the first image, two in one object; one in the second. Of two questions each, one counts."""
    torch.manual_seed(0)
    point, role = torch.rand(2, 3, 2), torch.randint(2, (2, 2, 3, 5)).float()
    point[1, 1:] = torch.nan
    cell = torch.tensor([[7, 3, 7], [0, 0, 0]])
    answer, score = torch.tensor([[3, OUT_OF_VOCABULARY], [1, IGNORE_INDEX]]), torch.randn(2, 2, 3, 2, 5)
    total = 0.0
    for image, points in ((0, {0: (0, 2), 1: (1,), 2: (0, 2)}), (1, {0: (0,)})):
        for number, together in points.items():
            for of in range(5):
                for channel in range(2):
                    given = float(score[image, 0, number, channel, of])
                    if any(role[image, 0, other, of] for other in together):
                        distance = 3 * (1 - given) ** 2
                    else:
                        distance = max(0.0, given + 0.3) ** 2
                    total += distance / 2 / len(points)
    batch = Batch(torch.zeros(2, 1, 1, 1), answer, auxiliary={"point": point, "role": role})
    assert float(referent_loss(score, cell, batch)) == pytest.approx(total, rel=1e-5)


def test_the_loss_of_a_step_is_that_of_its_sets() -> None:
    """Two points, a question, two steps: the second step is right but for one point in its second set."""
    step = torch.tensor([[[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]])[None, None]  # (B, Q, T, S, 2)
    score = torch.where(step > 0, 1.0, -1.0)
    score[0, 0, 0, 1, 1] = 0.2
    batch = Batch(torch.zeros(1, 1, 1, 1), torch.tensor([[3]]), auxiliary={"point": torch.rand(1, 2, 2), "step": step})
    losses = step_losses(score, torch.tensor([[0, 1]]), batch)
    assert losses.tolist() == pytest.approx([0, 0.5**2 / 2])


def test_each_round_is_supervised_by_its_step(made: Path) -> None:
    """What is wrong about step r reaches what comes before round r + 1, and nothing after."""
    recipe = replace(supervised(1, 1), model="clevr/multirn-rounds", arguments=(("rounds", 2), ("width", 32)))
    trainer = Trainer(recipe, 0, Splits.open(recipe, made), ranks=Ranks(), stop=Stop())
    trainer.state.position.epoch = 1
    batch = trainer.load(np.arange(4))
    assert batch.auxiliary is not None
    assert batch.auxiliary["step"].shape[-2:] == (2, 2)
    head = trainer.state.heads["referents"]
    relation: Any = make_relation(trainer.state.model)
    for step in range(2):
        head.zero_grad()
        scores = head(trainer.splits.train.preprocessing(batch.image), batch.question, batch.auxiliary["point"])
        step_losses(scores.step, scores.object, batch)[step].backward()
        reached = [hears.weight.grad is not None and bool(hears.weight.grad.any()) for hears in relation.hears]
        assert reached == [number < step for number in range(2)]
        assert relation.first.weight.grad.any()
        assert relation.g.weight.grad is None


def make_relation(model: nn.Module) -> nn.Module:
    assert isinstance(model, QuestionAnswerer)
    assert isinstance(model.answer, RelationModel)
    return model.answer.relation


def test_rounds_learn_their_steps_from_a_balanced_start(made: Path, tmp_path: Path) -> None:
    arguments = (("rounds", 2), ("width", 64))
    recipe = replace(supervised(3, 1), model="clevr/multirn-rounds", arguments=arguments, initialisation="balanced")
    recipe = replace(recipe, optim=replace(recipe.optim, lr=0.002), augment=False)
    curve = train(recipe, seed=0, runs=tmp_path / "runs", data=made)["curve"]
    assert curve[3]["loss"] < 0.8 * curve[1]["loss"]
    assert "accuracy" in curve[-1]


def test_balancing_leaves_the_scores_of_rounds_low(made: Path) -> None:
    recipe = replace(supervised(1, 1), model="clevr/multirn-rounds", initialisation="balanced", arguments=())
    splits = Splits.open(recipe, made)
    state = State.begin(recipe, splits, seed=0, device=torch.device("cpu"))
    initialise(state, recipe, splits, seed=0)
    batch = splits.train[np.arange(4)]
    assert batch.auxiliary is not None
    with torch.no_grad():
        scores = state.heads["referents"](
            splits.train.preprocessing(batch.image), batch.question, batch.auxiliary["point"]
        )
    assert (scores.role < 0).float().mean() > 0.8
    assert scores.role.std() < 0.6


def test_a_width_that_roles_do_not_fit_is_refused(made: Path) -> None:
    rounds = replace(supervised(1, 1), model="clevr/multirn-rounds", arguments=(("width", 48),))
    refused(rounds, made, "width=48: accepted .* multiples of 32")


SUPERVISED = ["multirn", "multirn-h", "cnn-lstm", "rn", "cnn-lstm-sa", "film-pixels"]


@pytest.mark.parametrize("name", [*(f"table4/{row}" for row in SUPERVISED), "clevr-like-v2/multirn-rounds"])
def test_in_every_row_muon_leaves_the_layer_that_answers_to_adam(name: str) -> None:
    recipe = find_recipe(name, "cpu")
    model, answer = make_model(recipe.model)
    heads = [
        make_object_head(model, kinds=5, answers=17),
        ReferentHead(model, roles=32, objects=math.prod(object_grid(recipe.model))),
    ]
    optimiser = make_optimiser(recipe.optim, nn.ModuleList([*heads, model]))
    assert isinstance(optimiser, Muon)
    linear = [module for module in answer.f.modules() if isinstance(module, nn.Linear)]
    assert linear[-1].weight not in optimiser.matrices
    assert linear[-2].weight in optimiser.matrices


def test_each_stage_trains_its_part_of_the_model(made: Path, tmp_path: Path) -> None:
    """Objects the CNN, referents all but f, answers all."""
    recipes = supervised(0, 0), supervised(1, 0), supervised(1, 1)
    begun = State.begin(recipes[0], Splits.open(recipes[0], made), seed=0, device=torch.device("cpu"))
    states = [{name: tensor.clone() for name, tensor in begun.model.state_dict().items()}]
    for recipe in recipes:
        train(recipe, seed=0, runs=tmp_path / "runs", data=made)
        states.append(read_weights(tmp_path / "runs" / run_id(recipe, 0) / "last.safetensors")[0])
    assert all(state.keys() == states[0].keys() for state in states)  # the heads are not in the model
    by_objects, by_referents, by_answers = (
        {name for name in before if not torch.equal(before[name], after[name])} for before, after in pairwise(states)
    )
    f = {name for name in states[0] if name.startswith("answer.f.")}
    assert by_objects == {name for name in states[0] if name.startswith("answer.encoder.")}
    assert not f & by_referents
    assert {"answer.relation.g.1.weight", "question_encoder.lstm.layers.0.weight_hh"} <= by_referents
    assert f <= by_answers


def test_a_record_says_what_was_supervised_with(made: Path, tmp_path: Path) -> None:
    record = train(supervised(1, 1), seed=0, runs=tmp_path / "runs", data=made)
    questions = open_questions(made, "train")
    assert record["data"]["objects"] == open_objects(made, questions, (8, 8)).checksum()
    assert record["data"]["train"] == open_referents(made, questions).checksum() != questions.checksum()
    assert ["accuracy" in epoch for epoch in record["curve"]] == [False, False, True]  # validated once it answers


@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_gradients_are_clipped_over_all_that_is_trained(made: Path, epoch: int) -> None:
    """The norm is that of the model and the heads together, in every stage."""
    recipe = replace(supervised(1, 1), model="clevr/cnn-lstm", arguments=(), optim=Optim("adam", 1e-3, clip_norm=0.01))
    trainer = Trainer(recipe, 0, Splits.open(recipe, made), ranks=Ranks(), stop=Stop())
    trainer.state.position.epoch = epoch
    trainer.step(trainer.stage[0].loss, trainer.load(np.arange(4)), answers=40)
    parts = [trainer.state.model, *trainer.state.heads.values()]
    parameters = {id(weight): weight for part in parts for weight in part.parameters()}
    norms = [float(weight.grad.norm()) for weight in parameters.values() if weight.grad is not None]
    assert math.hypot(*norms) == pytest.approx(0.01, rel=1e-3)


def test_every_stage_of_a_run_is_measured_with_its_own_steps(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BCN_DATA", str(made))
    steps, step = [], Trainer.step

    def counted(self: Trainer, loss: nn.Module, batch: Batch, *, answers: int) -> Tensor:
        steps.append((self.state.position.epoch, type(loss).__name__, self.stage[0].answers))
        return step(self, loss, batch, answers=answers)

    monkeypatch.setattr(Trainer, "step", counted)
    estimate = measure(supervised(1, 2), alone=False)
    assert set(steps) == {(0, "AnswerLoss", False), (1, "ReferentLoss", False), (2, "ReferentLoss", True)}
    assert estimate.steps == 4 * (IMAGES["train"] // 4)


@pytest.mark.parametrize("stopped_at", [2, 4, 7])  # in the stage of objects, of referents, and of answers
def test_a_run_stopped_in_any_stage_goes_on_where_it_was(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stopped_at: int
) -> None:
    recipe, undisturbed, stopped = supervised(1, 1), tmp_path / "undisturbed", tmp_path / "stopped"
    assert train(recipe, seed=0, runs=undisturbed, data=made, threads=1)["steps"] == 9
    step = Trainer.step

    def stop(self: Trainer, loss: nn.Module, batch: Batch, *, answers: int) -> Tensor:
        if self.state.position.step == stopped_at:
            raise Interrupted(signal.SIGINT)
        return step(self, loss, batch, answers=answers)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "step", stop)
        with pytest.raises(Interrupted):
            train(recipe, seed=0, runs=stopped, data=made, threads=1)
    train(recipe, seed=0, runs=stopped, data=made, threads=1)
    for name in ("last.safetensors", "best.safetensors"):
        one, other = (runs / run_id(recipe, 0) / name for runs in (undisturbed, stopped))
        assert one.read_bytes() == other.read_bytes()


def test_two_processes_train_every_stage(made: Path, tmp_path: Path) -> None:
    settings = [
        item
        for setting in ("auxiliary.object_epochs=1", "auxiliary.referent_epochs=1", "epochs=3")
        for item in ("--set", setting)
    ]
    order = ["train", "table4/multirn", "--scale", "smoke", *settings, "--data", str(made), "--runs", str(tmp_path)]
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "bcn"]
    package = str(Path(__file__).parents[2])
    environment = os.environ | {"PYTHONPATH": package, "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, *launcher, *order], env=environment, check=True, capture_output=True)
    (record,) = (json.loads(path.read_text()) for path in tmp_path.glob("*/record.json"))
    assert (record["ranks"], record["steps"]) == (2, 3 * 2)
    assert all(0 < point["loss"] < 100 for point in record["curve"])


def refused(recipe: Recipe, made: Path, key_words: str) -> None:
    with pytest.raises(BcnError, match=key_words):
        train(recipe, seed=0, runs=made.parent / "runs", data=made)


def test_epochs_out_of_range_are_refused(made: Path) -> None:
    refused(replace(supervised(1, 1), auxiliary=Auxiliary(4, 1)), made, "auxiliary.object_epochs=4")
    refused(replace(supervised(1, 1), auxiliary=Auxiliary(1, 3)), made, "auxiliary.referent_epochs=3")


@pytest.mark.parametrize("auxiliary", [Auxiliary(1, 0), Auxiliary(0, 1)])
def test_models_without_objects_and_data_without_scenes_are_refused(made: Path, auxiliary: Auxiliary) -> None:
    blind = replace(supervised(1, 1), model="clevr/lstm", augment=False, auxiliary=auxiliary)
    refused(blind, made, "clevr/lstm .*auxiliary=none")
    mlp = replace(find_recipe("table3/mlp", "smoke"), auxiliary=auxiliary)
    refused(mlp, made, "sort-of-clevr-v1 .*auxiliary=none")
    refused(replace(mlp, model="clevr/multirn"), made, "sort-of-clevr-v1 .*auxiliary=none")


def test_programs_that_do_not_fit_are_refused(made: Path) -> None:
    path = made / "questions" / "CLEVR_train_questions.json"
    content = json.loads(path.read_text())
    wrong = [{"function": "scene", "inputs": []}, {"function": "unique", "inputs": [0]}]
    for program, key_words in (
        (None, "question 7: .*no program.*auxiliary.referent_epochs=0"),
        ([*wrong, {"function": "query_size", "inputs": [1]}], "question 7: .*scene"),
    ):
        content["questions"][7]["program"] = program
        path.write_text(json.dumps(content))
        refused(supervised(1, 1), made, key_words)


def test_scenes_that_do_not_fit_are_refused(made: Path) -> None:
    path = made / "scenes" / "CLEVR_train_scenes.json"
    content = json.loads(path.read_text())
    content["scenes"][0]["objects"] = content["scenes"][0]["objects"][:1] * 17
    content["scenes"][0]["relationships"] = dict.fromkeys(("left", "right", "front", "behind"), [[]] * 17)
    path.write_text(json.dumps(content))
    refused(supervised(1, 1), made, "scene 0.*1 to 16 objects")
    content["scenes"].pop(0)
    path.write_text(json.dumps(content))
    refused(supervised(1, 1), made, f"{IMAGES['train'] - 1} of the {IMAGES['train']} images.*auxiliary=none")
    path.unlink()
    refused(supervised(1, 1), made, "CLEVR_train_scenes.json.*auxiliary=none")
