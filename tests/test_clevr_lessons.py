"""Lessons and sight: what they ask, how it is answered, and when a run asks it."""

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from bcn.data.clevr.format import open_questions
from bcn.data.clevr.lessons import LESSONS, read
from bcn.data.clevr.question import make_questions
from bcn.data.clevr.scene import make_scene
from bcn.data.clevr.sight import open_sight
from bcn.engine.checkpoint import load_weights
from bcn.engine.recipe import Data, Recipe
from bcn.engine.run import run_id
from bcn.engine.sets import Sets
from bcn.engine.state import State
from bcn.engine.stop import Interrupted
from bcn.engine.train import Trainer, train
from bcn.errors import BcnError
from bcn.paper.recipes import find_recipe

IMAGES = {"train": 12, "val": 2, "test": 2}
MEANS = {
    "size": {"large": "large big", "small": "small tiny"},
    "color": {color: color for color in ("gray", "red", "blue", "green", "brown", "purple", "cyan", "yellow")},
    "material": {"metal": "metal metallic shiny", "rubber": "rubber matte"},
    "shape": {
        "cube": "cube cubes block blocks",
        "sphere": "sphere spheres ball balls",
        "cylinder": "cylinder cylinders",
    },
}
"""what each word of a plain noun says, written here a second time"""


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
def test_scenes_that_are_not_whole_are_one_sentence(made: Path, spoil) -> None:
    path = made / "scenes" / "CLEVR_train_scenes.json"
    content = json.loads(path.read_text())
    spoil(content["scenes"][3])
    path.write_text(json.dumps(content))
    with pytest.raises(BcnError, match="scene 3: it does not have an image, objects and relationships"):
        open_questions(made, "lesson-1")
    with pytest.raises(BcnError, match="scene 3: it does not have an image, objects and relationships"):
        open_sight(made, open_questions(made, "train"), (8, 8))


def mentioned(question: str) -> dict[str, str]:
    words = set(re.findall(r"[a-z]+", question.lower().removeprefix("how big")))
    return {
        attribute: value
        for attribute, values in MEANS.items()
        for value, said in values.items()
        if words & set(said.split())
    }


def look(question: str, scene: dict) -> str:
    """The answer to a plain question, read off its words."""
    text, wanted = question.lower(), mentioned(question)
    found = [thing for thing in scene["objects"] if all(thing[key] == value for key, value in wanted.items())]
    if re.match(r"how many|what number|what is the number", text):
        return str(len(found))
    if re.match(r"is there|are there|do any", text):
        return "yes" if found else "no"
    (one,) = found
    signs = {"size": "size|how big", "color": "color", "material": "material|made of", "shape": "shape"}
    (asked,) = (attribute for attribute, sign in signs.items() if re.search(rf"\b({sign})\b", text))
    return str(one[asked])


def test_the_first_lesson_counts_by_one_attribute_in_the_same_words() -> None:
    all_colors = Counter()
    for index in range(40):
        scene = make_scene(index)
        counted = {made["question"]: made["answer"] for made in LESSONS["lesson-1"](scene)}
        numbers = {
            value: (
                f"How many {value} things are there?",
                str(sum(thing[attribute] == value for thing in scene["objects"])),
            )
            for attribute in ("size", "material", "color")
            for value in MEANS[attribute]
        }
        asked = {value: number for value, number in numbers.items() if number[0] in counted}
        assert counted == dict(asked.values())
        assert len(asked) == 10
        assert {*MEANS["size"], *MEANS["material"]} < asked.keys()
        all_colors.update(value for value in asked if value in MEANS["color"])
    assert len(set(all_colors.values())) == 1, "every color as often as the others"


KINDS = {"count", "exist", "greater_than", "less_than", "equal_integer"}
KINDS |= {f"{asked}_{attribute}" for asked in ("query", "equal") for attribute in MEANS}


@pytest.mark.parametrize(("lesson", "hops"), [("lesson-6", 0), ("lesson-7", 1)])
def test_the_last_lessons_name_things_by_their_own_attributes_or_by_one_other_thing(lesson: str, hops: int) -> None:
    kinds, attributes, most = Counter(), set(), 0
    for index in range(60):
        scene = make_scene(index)
        before, asked = (list(LESSONS[name](scene)) for name in (f"lesson-{5 + hops}", lesson))
        assert [made["question"] for made in asked[: len(before)]] == [made["question"] for made in before]
        asked = asked[len(before) :]
        assert len({question["question"] for question in asked}) == len(asked) == 10
        for question in asked:
            functions = [step["function"] for step in question["program"]]
            assert not {"union", "intersect", *(f"same_{attribute}" for attribute in MEANS)} & set(functions)
            nouns = functions.count("scene")
            assert functions.count("relate") <= hops * nouns
            most = max(most, functions.count("relate"))
            kinds[functions[-1]] += 1
            if nouns == 1 and "relate" not in functions:
                assert look(question["question"], scene) == question["answer"], question
                attributes |= set(mentioned(question["question"]))
    assert most == 2 * hops
    assert attributes == set(MEANS)
    assert set(kinds) == KINDS


def compare(question: str, scene: dict) -> str:
    """The answer to a comparison of the things of two values, or of two that are the only ones of theirs."""
    words = question.lower().rstrip("?").split()
    said = {word: (key, value) for key, values in MEANS.items() for value in values for word in values[value].split()}
    (first, second) = (said[word] for word in words if word in said)
    assert first != second
    ones, others = ([thing for thing in scene["objects"] if thing[key] == value] for key, value in (first, second))
    if "same" in words:
        (attribute,) = (name for name in MEANS if name in words)
        ((one,), (other,)) = ones, others
        assert one is not other
        return "yes" if one[attribute] == other[attribute] else "no"
    (sign,) = (name for name in ("more", "fewer", "many") if name in words)
    left_over = len(ones) - len(others)
    return "yes" if {"more": left_over > 0, "fewer": left_over < 0, "many": left_over == 0}[sign] else "no"


FOUR = ["left", "right", "front", "behind"]


@pytest.mark.parametrize(("lesson", "sides"), [("lesson-2", FOUR[:1]), ("lesson-3", FOUR[:2]), ("lesson-4", FOUR)])
def test_the_other_lessons_ask_every_kind_in_its_simplest_form(lesson: str, sides: list[str]) -> None:
    kinds, colors, beside, pairs = Counter(), Counter(), Counter(), set()
    for index in range(160):
        scene = make_scene(index)
        told = list(LESSONS[lesson](scene))
        assert len({made["question"] for made in told}) == len(told) <= 20
        for made in told:
            question, kind = made["question"], made["program"][-1]["function"]
            kinds[kind] += 1
            if side := re.search("|".join(FOUR), question):
                (color,) = mentioned(question).values()
                (number,) = (n for n, thing in enumerate(scene["objects"]) if thing["color"] == color)
                right = str(len(scene["relationships"][side[0]][number]))
                beside[side[0]] += 1
            elif kind.startswith(("equal", "greater", "less")):
                right = compare(question, scene)
                pairs.add(tuple(word for word in question.rstrip("?").split() if word in MEANS["color"]))
            else:
                right = look(question, scene)
                colors.update({value for key, value in mentioned(question).items() if key == "color"})
            assert made["answer"] == right, made
    assert sorted(beside) == sorted(sides)
    assert max(beside.values()) < 1.5 * min(beside.values())
    assert set(kinds) == {
        *("count", "exist", "query_size", "query_material", "query_shape", "greater_than", "less_than"),
        *("equal_integer", "equal_size", "equal_material", "equal_shape"),
    }
    assert min(kinds.values()) > 50
    assert set(colors) == set(MEANS["color"])
    assert len(pairs) == 56  # every color with every other


def test_the_fifth_lesson_names_things_by_any_attribute() -> None:
    kinds, named = Counter(), Counter()
    for index in range(80):
        scene = make_scene(index)
        for made in list(LESSONS["lesson-5"](scene))[len(list(LESSONS["lesson-4"](scene))) :]:
            question, kind = made["question"], made["program"][-1]["function"]
            compared = kind.startswith(("equal", "greater", "less"))
            assert (compare if compared else look)(question, scene) == made["answer"], made
            assert not re.search("|".join(FOUR), question)
            kinds[kind] += 1
            named.update(mentioned(question).items())
    assert set(kinds) == KINDS - {"exist"}
    assert min(kinds.values()) > 20
    assert len(named) == sum(map(len, MEANS.values()))


def test_a_lesson_shows_the_images_that_it_asks_about(made: Path) -> None:
    scenes = [make_scene(index) for index in range(IMAGES["train"])]
    dataset, own = open_questions(made, "lesson-1"), open_questions(made, "train")
    assert len(dataset) == len(own) == IMAGES["train"]  # ten questions are a row
    assert dataset.vocabulary == own.vocabulary
    assert np.shares_memory(dataset.image, own.image) or dataset.image.filename == own.image.filename
    batch = dataset[np.arange(len(dataset))]
    assert sorted(batch.image[:, 0, 0, 0].tolist()) == [*range(IMAGES["train"])]
    for row in range(len(dataset)):
        scene = scenes[int(batch.image[row, 0, 0, 0])]
        for words, answer in zip(batch.question[row], batch.answer[row], strict=True):
            said = " ".join(dataset.vocabulary.decode(words))
            if answer >= 0 and "?" not in said:  # a row of five is filled up
                assert look(said, scene) == dataset.answers[answer]


def test_a_run_takes_its_lessons_first(made: Path, tmp_path: Path) -> None:
    recipe = replace(
        find_recipe("table4/q-type", "cpu"), batch=4, epochs=5, lessons=(2, 0, 1), short_first=1, rehearse=0
    )
    record = train(recipe, seed=0, runs=tmp_path / "runs", data=made)
    known = IMAGES["train"] * (10 + 10 + 2 + 10)  # two epochs of ten counts; the two shortest; all
    assert known < record["questions"] <= known + 10 * IMAGES["train"]  # rows of up to ten of the third lesson
    opened = {name: open_questions(made, name).checksum() for name in ("train", "lesson-1", "lesson-3")}
    assert {name: record["data"][name] for name in opened} == opened
    assert "lesson-2" not in record["data"]
    other = replace(recipe, lessons=(0, 3))
    train(other, seed=0, runs=tmp_path / "runs", data=made)
    weights = [load_weights(tmp_path / "runs" / run_id(each, 0) / "last.safetensors")[0] for each in (recipe, other)]
    assert not all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


@pytest.mark.parametrize("grid", [(8, 8), (16, 16)])
def test_sight_asks_what_is_where(made: Path, grid: tuple[int, int]) -> None:
    seen = open_sight(made, open_questions(made, "train"), grid)
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


def seeing(lessons: tuple[int, ...]) -> Recipe:
    """An epoch of sight, then lessons."""
    recipe = find_recipe("table4/multirn", "smoke")
    recipe = replace(recipe, optim=replace(recipe.optim, name="muon", momentum=0.9), data=Data("clevr-like-v1"))
    return replace(recipe, batch=4, epochs=1 + sum(lessons), sight=1, lessons=lessons)


def test_a_run_learns_to_see_before_its_lessons(made: Path, tmp_path: Path) -> None:
    weights = []
    for lessons in ((), (1,)):
        recipe = seeing(lessons)
        record = train(recipe, seed=0, runs=tmp_path / "runs", data=made)
        weights.append(load_weights(tmp_path / "runs" / run_id(recipe, 0) / "last.safetensors")[0])
        assert record["data"]["sight"] == open_sight(made, open_questions(made, "train"), (8, 8)).checksum()
    complete = Sets.open(recipe, made).complete(recipe)
    begun = State.begin(complete, seed=0, device=torch.device("cpu")).model.state_dict()
    assert begun.keys() == weights[0].keys()  # what answered is not in the model
    moved = {name for name in begun if not torch.equal(begun[name], weights[0][name])}
    assert moved == {name for name in begun if name.startswith("answer.encoder.")}
    assert any(not torch.equal(weights[0][name], weights[1][name]) for name in begun if ".relation." in name)


@pytest.mark.parametrize("stopped_at", [2, 4])  # within sight, and within the lesson after it
def test_stopped_while_it_learns_to_see_a_run_goes_on_where_it_was(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stopped_at: int
) -> None:
    recipe, undisturbed, stopped = seeing((1,)), tmp_path / "undisturbed", tmp_path / "stopped"
    assert train(recipe, seed=0, runs=undisturbed, data=made, threads=1)["steps"] == 6
    step = Trainer.step

    def stop(self: Trainer, *given: object, **named: object) -> torch.Tensor:
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


def test_two_processes_learn_to_see_together(made: Path, tmp_path: Path) -> None:
    """First the CNN and what it answers with are shared out, then the model, of which the CNN is a part."""
    settings = [item for setting in ("sight=1", "lessons=1", "epochs=3") for item in ("--set", setting)]
    order = ["train", "table4/multirn", "--scale", "smoke", *settings, "--data", str(made), "--runs", str(tmp_path)]
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "bcn"]
    package = str(Path(__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": package, "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, *launcher, *order], env=environment, check=True, capture_output=True)
    (record,) = (json.loads(path.read_text()) for path in tmp_path.glob("*/record.json"))
    assert (record["ranks"], record["steps"]) == (2, 3 * 2)
    assert all(0 < point["loss"] < 100 for point in record["curve"])


def test_the_last_lesson_is_asked_again_in_between(made: Path, tmp_path: Path) -> None:
    recipe = replace(find_recipe("table4/q-type", "cpu"), batch=4, epochs=2, lessons=(1,), short_first=1, rehearse=3)
    record = train(recipe, seed=0, runs=tmp_path / "runs", data=made)
    # three steps of four rows in an epoch: ten counts each; then two of the two shortest, and one of counts again
    assert record["questions"] == 3 * 4 * 10 + 2 * 4 * 2 + 4 * 10
    with pytest.raises(BcnError, match="rehearse=-1"):
        train(replace(recipe, rehearse=-1), seed=0, runs=tmp_path / "runs", data=made)


def test_what_cannot_be_taught_is_refused(made: Path, tmp_path: Path) -> None:
    recipe = replace(find_recipe("table4/q-type", "cpu"), batch=4, epochs=2, lessons=(1,))
    with pytest.raises(BcnError, match="cannot be trained with sight=3"):
        train(replace(recipe, sight=3, lessons=()), seed=0, runs=tmp_path / "runs", data=made)
    for lessons in ((-1,), (1, 1, 0, 0, 0, 0, 0, 0), (1, 2)):
        with pytest.raises(BcnError, match=r"cannot be trained with lessons=.* \(up to 7 numbers, 2 in all\)"):
            train(replace(recipe, lessons=lessons), seed=0, runs=tmp_path / "runs", data=made)
    with pytest.raises(BcnError, match="asks nothing in words: train with lessons="):
        train(replace(find_recipe("table3/mlp", "smoke"), lessons=(1,)), seed=0, runs=tmp_path / "runs")
    with pytest.raises(BcnError, match="has no CNN, to be taught to see: train with sight=0"):
        train(replace(recipe, lessons=(), sight=1), seed=0, runs=tmp_path / "runs", data=made)
    with pytest.raises(BcnError, match="no scenes to learn to see by: train with sight=0"):
        train(replace(find_recipe("table3/mlp", "smoke"), sight=1), seed=0, runs=tmp_path / "runs")
    (made / "scenes" / "CLEVR_train_scenes.json").unlink()
    with pytest.raises(BcnError, match="lessons are made from scenes"):
        next(read(made, "lesson-1"))
    with pytest.raises(BcnError, match="lessons are made from scenes"):
        train(recipe, seed=0, runs=tmp_path / "runs", data=made)
