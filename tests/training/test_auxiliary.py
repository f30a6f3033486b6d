"""Sight and pointing: what scenes teach, and when a run is taught it."""

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from bcn.data.clevr_like.questions import make_questions
from bcn.data.clevr_like.scene import make_scene
from bcn.data.clevr_like.supervision import VALUES, ReferentDataset, open_objects, open_referents
from bcn.data.dataset import IGNORE_INDEX, OUT_OF_VOCABULARY, Batch
from bcn.data.vqa.load import open_questions
from bcn.errors import BcnError
from bcn.models.registry import create_model
from bcn.paper.estimate import measure
from bcn.paper.tables import find_recipe
from bcn.training.auxiliary import ReferentHead, make_object_head, object_grid, referent_loss
from bcn.training.distributed import Ranks
from bcn.training.interrupts import Interrupted, Stop
from bcn.training.loop import Trainer, train
from bcn.training.optim.schedule import make_optimiser
from bcn.training.recipe import Auxiliary, Data, Optim, Recipe
from bcn.training.run import run_id
from bcn.training.splits import Splits
from bcn.training.state import State
from bcn.training.weights import read_weights

IMAGES = {"train": 12, "val": 2, "test": 2}
WORDS = {
    "size": {"large": "large big", "small": "small tiny"},
    "color": {color: color for color in ("gray", "red", "blue", "green", "brown", "purple", "cyan", "yellow")},
    "material": {"metal": "metal metallic shiny", "rubber": "rubber matte"},
    "shape": {
        "cube": "cube cubes block blocks",
        "sphere": "sphere spheres ball balls",
        "cylinder": "cylinder cylinders",
    },
}
"""what each word of a noun says, written here a second time"""


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """clevr-like-v1 with pictures of one shade each; the questions name the images in another order than the scenes."""
    monkeypatch.setenv("BCN_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "clevr-like-v1"
    for split, images in IMAGES.items():
        scenes = [make_scene(index, split=split) for index in range(images)]
        questions = [question for scene in reversed(scenes) for question in make_questions(scene)]
        for key, entries in (("scenes", scenes), ("questions", questions)):
            path = root / key / f"CLEVR_{split}_{key}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"info": {"version": "clevr-like-v1"}, key: entries}))
        for index, scene in enumerate(scenes):
            path = root / "images" / split / scene["image_filename"]
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (128, 128), (index, 0, 0)).save(path)
    return root


@pytest.mark.parametrize("spoil", [lambda scene: scene.pop("objects"), lambda scene: scene["objects"][0].pop("color")])
def test_scenes_that_are_not_whole_are_one_sentence(made: Path, spoil: Callable[[dict[str, Any]], object]) -> None:
    path = made / "scenes" / "CLEVR_train_scenes.json"
    content = json.loads(path.read_text())
    spoil(content["scenes"][3])
    path.write_text(json.dumps(content))
    with pytest.raises(BcnError, match="scene 3: it does not have an image, objects and relationships"):
        open_objects(made, open_questions(made, "train"), (8, 8))


@pytest.mark.parametrize("grid", [(8, 8), (16, 16)])
def test_sight_asks_what_is_where(made: Path, grid: tuple[int, int]) -> None:
    seen = open_objects(made, open_questions(made, "train"), grid)
    assert len(seen) == IMAGES["train"]
    batch, asked = seen[np.arange(len(seen))], set()
    for row, shade in enumerate(batch.image[:, 0, 0, 0].tolist()):
        things = {  # pixels are those of the 480 x 320 that a scene speaks of
            (thing["pixel_coords"][0], thing["pixel_coords"][1]): thing for thing in make_scene(shade)["objects"]
        }
        told = set()
        for (x, y, kind), answer in zip(batch.question[row].tolist(), batch.answer[row].tolist(), strict=True):
            name = seen.kinds[int(kind)]
            if name == "exist":
                column, line = int(x * grid[1]), int(y * grid[0])
                inside = [at for at in things if at[0] * grid[1] // 480 == column and at[1] * grid[0] // 320 == line]
                assert seen.answers[answer] == ("yes" if inside else "no")
                asked.add((row % 4, column, line))
            elif answer >= 0:
                (at,) = (at for at in things if abs(at[0] - 480 * x) + abs(at[1] - 320 * y) < 0.01)
                assert seen.answers[answer] == things[at][name]
                told.add((at, name))
        assert len(told) == 4 * len(things)
    assert len(asked) == grid[0] * grid[1]  # four images in a row ask of every cell once
    assert batch.kind.equal(batch.question[..., 2].long())


def fitting(phrase: str, scene: dict[str, Any]) -> set[int]:
    """The things that a noun without relations means, found by its words alone."""
    said = {
        (attribute, value)
        for word in phrase.split()
        for attribute, values in WORDS.items()
        for value, words in values.items()
        if word in words.split()
    }
    things = enumerate(scene["objects"])
    return {number for number, thing in things if all(thing[attribute] == value for attribute, value in said)}


def pointed(made: Path) -> ReferentDataset:
    return open_referents(made, open_questions(made, "train"))


def test_pointing_tells_which_things_a_question_means(made: Path) -> None:
    """Against the words of questions that have no relation, and for all against the answer that follows."""
    data, plain, empty = pointed(made), 0, 0
    batch = data[np.arange(len(data))]
    assert batch.auxiliary["role"].shape == (*batch.answer.shape, batch.auxiliary["point"].shape[1], 2 * 16)
    for row, shade in enumerate(batch.image[:, 0, 0, 0].tolist()):
        scene = make_scene(shade)
        pixels = [thing["pixel_coords"][:2] for thing in scene["objects"]]
        at = batch.auxiliary["point"][row][~batch.auxiliary["point"][row].isnan().any(1)]
        things = torch.tensor(pixels) / torch.tensor([480, 320])
        assert torch.allclose(at[: len(things)], things)
        assert (at[len(things) :, None] - things).abs().amax(-1).min() > 0.125  # nothing is there, or near
        empty += len(at) - len(things)
        for words, answer, kind, meant in zip(
            batch.question[row], batch.answer[row], batch.kind[row], batch.auxiliary["role"][row], strict=True
        ):
            if answer < 0:
                continue
            said, told = " ".join(data.vocabulary.decode(words)), data.answers[answer]
            first, second = (set(meant[:, which].nonzero().flatten().tolist()) for which in (0, 16))
            asked = data.kinds[kind].partition("_")[2]
            for number, ways in enumerate(meant.tolist()):
                for which, those in ((0, first), (16, second)):
                    told_of = [VALUES[place] for place, way in enumerate(ways[which + 1 : which + 16]) if way]
                    is_asked = asked in WORDS and number in those
                    assert told_of == ([scene["objects"][number][asked]] if is_asked else [])
            match data.kinds[kind].split("_"):
                case ["count"]:
                    assert told == str(len(first))
                case ["exist"]:
                    assert told == ("yes" if first else "no")
                case ["equal", "integer"]:
                    assert told == ("yes" if len(first) == len(second) else "no")
                case ["less", _]:
                    assert told == ("yes" if len(first) < len(second) else "no")
                case ["greater", _]:
                    assert told == ("yes" if len(first) > len(second) else "no")
                case ["query", attribute]:
                    (one,) = first
                    assert told == scene["objects"][one][attribute]
                case ["equal", attribute]:
                    (one,), (other,) = first, second
                    same = scene["objects"][one][attribute] == scene["objects"][other][attribute]
                    assert told == ("yes" if same else "no")
            relational = {"left", "right", "front", "behind", "same", "or"} & set(said.split())
            if data.kinds[kind] in ("count", "exist") and not relational:
                assert first == fitting(said, scene)
                assert not second
                plain += 1
    assert plain >= 5
    assert 3 * len(data) < empty <= 4 * len(data)


def test_images_and_the_places_of_their_things_are_moved_and_mirrored_together(made: Path) -> None:
    """A bright pixel where each thing is stays where it is told to be, unless it left the image."""
    data = pointed(made)
    batch = data[np.arange(len(data))]
    image, places = torch.zeros_like(batch.image), (batch.auxiliary["point"] * 128).long()
    there = ~batch.auxiliary["point"].isnan().any(-1)
    for row in range(len(image)):
        for x, y in places[row][there[row]].tolist():
            image[row, :, y, x] = 255
    batch = batch._replace(
        image=image,
        auxiliary=batch.auxiliary | {"point": (places + 0.5) / 128 + torch.where(there, 0, torch.nan)[..., None]},
    )
    moved = data.augment(batch, torch.Generator().manual_seed(1))
    mirrored, found = (moved.auxiliary["point"][:, 0] - batch.auxiliary["point"][:, 0]).abs()[:, 0] > 17 / 128, 0
    assert 0 < mirrored.sum() < len(mirrored)
    for row in range(len(image)):
        for x, y in (moved.auxiliary["point"][row][there[row]] * 128).tolist():
            if 0 <= x < 128 and 0 <= y < 128:
                assert moved.image[row, 0, int(y), int(x)] == 255
                found += 1
    assert found > 40
    assert moved.auxiliary["point"].isnan().any(-1).equal(~there)
    assert moved.auxiliary["role"].equal(batch.auxiliary["role"])


@pytest.mark.parametrize(("name", "objects"), [("multirn", 64), ("multirn-h", 256), ("cnn-lstm", 64), ("rn", 64)])
def test_a_model_points_and_answers_as_it_answers_by_itself(name: str, objects: int) -> None:
    torch.manual_seed(0)
    model: Any = create_model(f"clevr/{name}", vocab_size=9).double().eval()
    ways, channels = 32, 1 if name in ("cnn-lstm", "rn") else 8
    pointing = ReferentHead(model, roles=ways, objects=objects).double().eval()
    image, question = torch.rand(2, 3, 128, 128).double(), torch.randint(1, 9, (2, 3, 5))
    thing = torch.rand(2, 4, 2).double()
    thing[1, 3] = torch.nan
    logits, points, at = pointing(image, question, thing)
    assert torch.allclose(logits, model(image, question), atol=1e-10)
    assert points.shape == (2, 3, 4, channels, ways)
    assert name == "rn" or (points < 0).double().mean() > 0.8  # nearly all is silent at the start
    side = int(objects**0.5)
    x, y = thing[0, 2].tolist()
    assert at[0, 2] == side * int(y * side) + int(x * side)
    alone, same, _ = pointing(image, question, thing, answers=False)
    assert alone is None
    assert torch.equal(points, same)
    moved = thing.clone()
    moved[0, 0] = (torch.floor(thing[0, 0] * side) + 0.9) / side  # within its object; and another thing elsewhere
    moved[0, 1] = (torch.floor(thing[0, 1] * side) + side // 2 + 0.5) % side / side
    _, others, _ = pointing(image, question, moved)
    assert torch.equal(others[0, :, 0], points[0, :, 0])
    assert not torch.allclose(others[0, :, 1], points[0, :, 1])


def test_multirn_points_with_what_it_sums() -> None:
    """g of every object, summed, is what f hears."""
    torch.manual_seed(0)
    relation = create_model("clevr/multirn").double().answer.relation
    map_BCHW, question_BQD = torch.randn(2, 24, 4, 4).double(), torch.randn(2, 3, 256).double()
    each = relation.each(map_BCHW, question_BQD, torch.arange(16).expand(2, 16))
    assert torch.allclose(each.relu().sum(2), relation(map_BCHW, question_BQD), atol=1e-10)


def taught(pointing: int, answering: int) -> Recipe:
    """An epoch of sight, then of pointing, then of both pointing and answering."""
    recipe = find_recipe("table4/multirn", "smoke")
    recipe = replace(recipe, optim=replace(recipe.optim, name="muon", momentum=0.9), data=Data("clevr-like-v1"))
    return replace(
        recipe, batch_size=4, epochs=1 + pointing + answering, auxiliary=Auxiliary(1, pointing), augment=True
    )


def test_a_run_learns_to_see_then_to_point_then_to_answer(made: Path, tmp_path: Path) -> None:
    weights = []
    seeing = taught(0, 0)
    for recipe in (seeing, taught(1, 0), taught(1, 1)):
        record = train(recipe, seed=0, runs=tmp_path / "runs", data=made)
        weights.append(read_weights(tmp_path / "runs" / run_id(recipe, 0) / "last.safetensors")[0])
        assert record["data"]["objects"] == open_objects(made, open_questions(made, "train"), (8, 8)).checksum()
    assert ["accuracy" in epoch for epoch in record["curve"]] == [False, False, True]  # nothing is asked before
    assert record["data"]["train"] == pointed(made).checksum() != open_questions(made, "train").checksum()
    begun = State.begin(seeing, Splits.open(seeing, made), seed=0, device=torch.device("cpu")).model.state_dict()
    assert begun.keys() == weights[0].keys() == weights[2].keys()  # the heads are not in the model
    seen, shown, asked = (
        {name for name in begun if not torch.equal(before[name], after[name])}
        for before, after in zip([begun, weights[0], weights[1]], weights, strict=True)
    )
    assert seen == {name for name in begun if name.startswith("answer.encoder.")}
    assert {name for name in begun if name.startswith("answer.f.")} & shown == set()
    assert {"answer.relation.g.1.weight", "question_encoder.lstm.layers.0.weight_hh"} <= shown
    assert {name for name in begun if name.startswith("answer.f.")} <= asked


@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_gradients_are_clipped_over_all_that_is_trained(made: Path, epoch: int) -> None:
    """The norm is that of the model and the heads together, in every stage."""
    recipe = replace(taught(1, 1), model="clevr/cnn-lstm", optim=Optim("adam", 1e-3, clip_norm=0.01))
    trainer = Trainer(recipe, 0, Splits.open(recipe, made), ranks=Ranks(), stop=Stop())
    trainer.state.position.epoch = epoch
    trainer.step(trainer.stage[0].loss, trainer.load(np.arange(4)), answers=40)
    parts = {"model": trainer.state.model, **dict(trainer.state.heads.items())}
    parameters = {id(weight): weight for part in parts.values() for weight in part.parameters()}
    norms = [float(weight.grad.norm()) for weight in parameters.values() if weight.grad is not None]
    assert math.hypot(*norms) == pytest.approx(0.01, rel=1e-3)


def test_every_phase_of_a_run_is_measured_with_its_own_steps(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BCN_DATA", str(made))
    taken, step = [], Trainer.step

    def noted(self: Trainer, model: torch.nn.Module, *given: Any, **named: Any) -> torch.Tensor:
        stage, _ = self.stage
        taken.append((self.state.position.epoch, type(model).__name__, stage.answers))
        return step(self, model, *given, **named)

    monkeypatch.setattr(Trainer, "step", noted)
    recipe = taught(1, 2)
    estimate = measure(recipe, alone=False)
    assert set(taken) == {(0, "AnswerLoss", False), (1, "ReferentLoss", False), (2, "ReferentLoss", True)}
    assert estimate.steps == 4 * (IMAGES["train"] // 4)


@pytest.mark.parametrize("name", ["multirn", "multirn-h", "cnn-lstm", "rn", "cnn-lstm-sa", "film-pixels"])
def test_in_every_row_the_layer_that_answers_is_the_one_that_muon_leaves_to_adam(name: str) -> None:
    recipe = find_recipe(f"table4/{name}", "cpu")
    model: Any = create_model(recipe.model)
    heads = [
        make_object_head(model, kinds=5, answers=17),
        ReferentHead(model, roles=32, objects=math.prod(object_grid(recipe.model))),
    ]
    optimiser: Any = make_optimiser(recipe.optim, nn.ModuleList([*heads, model]))
    assert model.answer.f[-1].weight not in optimiser.matrices
    assert model.answer.f[-3].weight in optimiser.matrices


def test_the_loss_of_pointing_is_that_of_places_that_are_there() -> None:
    """Three places in the first image, two of them in one object; one in the second, whose other questions are none."""
    torch.manual_seed(0)
    place, meant = torch.rand(2, 3, 2), torch.randint(2, (2, 2, 3, 5)).float()
    place[1, 1:] = torch.nan
    at = torch.tensor([[4, 7, 4], [0, 0, 0]])
    answer, pointed = torch.tensor([[3, OUT_OF_VOCABULARY], [1, IGNORE_INDEX]]), torch.randn(2, 2, 3, 2, 5)
    total = 0.0
    for image, places in ((0, {0: (0, 2), 1: (1,), 2: (0, 2)}), (1, {0: (0,)})):
        for number, together in places.items():
            for way in range(5):
                for channel in range(2):
                    said = float(pointed[image, 0, number, channel, way])
                    if any(meant[image, 0, other, way] for other in together):
                        far = 3 * (1 - said) ** 2
                    else:
                        far = max(0.0, said + 0.3) ** 2
                    total += far / 2 / len(places)
    batch = Batch(torch.zeros(2, 1, 1, 1), answer, auxiliary={"point": place, "role": meant})
    assert float(referent_loss(pointed, at, batch)) == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("stopped_at", [2, 4, 7])  # within sight, within pointing, and within answering
def test_stopped_while_it_is_taught_a_run_goes_on_where_it_was(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stopped_at: int
) -> None:
    recipe, undisturbed, stopped = taught(1, 1), tmp_path / "undisturbed", tmp_path / "stopped"
    assert train(recipe, seed=0, runs=undisturbed, data=made, threads=1)["steps"] == 9
    step = Trainer.step

    def stop(self: Trainer, *given: Any, **named: Any) -> torch.Tensor:
        if self.state.position.step == stopped_at:
            raise Interrupted(signal.SIGINT)
        return step(self, *given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "step", stop)
        with pytest.raises(Interrupted):
            train(recipe, seed=0, runs=stopped, data=made, threads=1)
    train(recipe, seed=0, runs=stopped, data=made, threads=1)
    for name in ("last.safetensors", "best.safetensors"):
        one, other = (runs / run_id(recipe, 0) / name for runs in (undisturbed, stopped))
        assert one.read_bytes() == other.read_bytes()


def test_two_processes_are_taught_together(made: Path, tmp_path: Path) -> None:
    """First the CNN and what it answers with are shared out, then the model without f, then all of it."""
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


def test_what_cannot_be_taught_is_refused(made: Path, tmp_path: Path) -> None:
    def refused(recipe: Recipe, why: str) -> None:
        with pytest.raises(BcnError, match=why):
            train(recipe, seed=0, runs=tmp_path / "runs", data=made)

    recipe = taught(1, 1)
    refused(replace(recipe, auxiliary=Auxiliary(4, 1)), "auxiliary.object_epochs=4")
    refused(replace(recipe, auxiliary=Auxiliary(1, 3)), "auxiliary.referent_epochs=3")
    blind = replace(recipe, model="clevr/lstm", augment=False)
    refused(
        replace(blind, auxiliary=Auxiliary(1, 0)),
        "clevr/lstm .*auxiliary=none",
    )
    refused(
        replace(blind, auxiliary=Auxiliary(0, 1)),
        "clevr/lstm .*auxiliary=none",
    )
    for auxiliary in (Auxiliary(1, 0), Auxiliary(0, 1)):
        mlp = replace(find_recipe("table3/mlp", "smoke"), auxiliary=auxiliary)
        refused(mlp, "sort-of-clevr/mlp .*auxiliary=none")
    path = made / "questions" / "CLEVR_train_questions.json"
    content = json.loads(path.read_text())
    for program, why in (
        (None, "question 7: .*no program.*auxiliary.referent_epochs=0"),
        ([{"function": "scene", "inputs": []}, {"function": "unique", "inputs": [0]}], "question 7: .* fit its scene"),
    ):
        content["questions"][7]["program"] = program and [*program, {"function": "query_size", "inputs": [1]}]
        path.write_text(json.dumps(content))
        refused(recipe, why)
    scenes = made / "scenes" / "CLEVR_train_scenes.json"
    content = json.loads(scenes.read_text())
    thing = content["scenes"][0]["objects"][0]
    content["scenes"][0]["objects"] = [thing] * 17
    content["scenes"][0]["relationships"] = dict.fromkeys(("left", "right", "front", "behind"), [[]] * 17)
    scenes.write_text(json.dumps(content))
    refused(recipe, "a scene of train has 17 objects: accepted are 16; train with auxiliary.referent_epochs=0")
    content["scenes"].pop()
    scenes.write_text(json.dumps(content))
    refused(recipe, f"describes {IMAGES['train'] - 1} of the {IMAGES['train']} images of train: get its own, or")
    scenes.unlink()
    refused(recipe, "CLEVR_train_scenes.json.* is not there")
