"""Training that starts from trained weights: what is taken over, what grows, what is refused and recorded."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.command import run_bcn
from helpers.squares import own_layout

import bcn
from bcn.errors import BcnError
from bcn.paper.start_run import choose_start
from bcn.paper.tables import find_recipe
from bcn.training.recipe import fingerprint
from bcn.training.start import Start
from bcn.training.weights import read_weights

SCRATCH: dict[str, Any] = {"scale": "smoke", "start": "none", "threads": 1}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BCN_CACHE", str(tmp_path / "cache"))


def other_layout(directory: Path) -> Path:
    """As `own_layout`, with other words and another answer."""
    own_layout(directory)
    text = (directory / "questions.jsonl").read_text()
    (directory / "questions.jsonl").write_text(text.replace("squares are there", "boxes exist").replace('"1"', '"one"'))
    return directory


def test_vocabulary_and_answers_grow_and_the_rest_is_taken_over(tmp_path: Path) -> None:
    first = bcn.train(own_layout(tmp_path / "first"), runs=tmp_path / "runs", **SCRATCH)
    changes = ["optim.lr=1e-12", "optim.warmup=0", "optim.weight_decay=0"]
    second = bcn.train(
        other_layout(tmp_path / "second"),
        scale="smoke",
        start=first.path,
        changes=changes,
        runs=tmp_path / "runs",
        threads=1,
    )
    (old, was), (new, now) = (read_weights(run.path / "best.safetensors") for run in (first, second))
    words, answers = was["words"], was["answers"]
    assert now["words"][: len(words)] == words
    assert now["answers"][: len(answers)] == answers
    assert {*now["words"]} - {*words} == {"boxes", "exist"}
    assert now["answers"][len(answers) :] == ["one"]
    grown = [name for name in old if old[name].shape != new[name].shape]
    assert [new[name].shape[0] - old[name].shape[0] for name in grown] == [1, 1, 2]
    for name, tensor in old.items():
        if "norm" not in name:  # whose statistics a step moves
            kept = new[name][: len(tensor)] if tensor.dim() else new[name]
            assert torch.allclose(kept, tensor, atol=1e-6), name
    record = second.record()
    assert record is not None
    assert record["recipe"]["start"].startswith(f"{first.path.name}@")


def test_more_epochs_for_a_finished_run_by_the_command(tmp_path: Path) -> None:
    mine = own_layout(tmp_path / "mine")
    command = ["train", "own", "--scale", "smoke", "--data", mine, "--runs", tmp_path / "runs", "--threads", 1]
    run_bcn(*command, "--from", "none")
    (first,) = (tmp_path / "runs").glob("own-*")
    run_bcn(*command, "--from", first)
    (second,) = set((tmp_path / "runs").glob("own-*")) - {first}
    manifest = json.loads((second / "manifest.json").read_text())
    assert manifest["recipe"]["start"].startswith(f"{first.name}@")
    run_bcn(*command, "--from", first)
    assert len(list((tmp_path / "runs").glob("own-*"))) == 2, "the same run is shown again"
    assert len(list((tmp_path / "runs").glob("blind-*"))) == 1, "all are compared with one blind model"


def test_own_data_starts_from_the_shipped_weights_unless_its_model_is_another() -> None:
    recipe, start = choose_start(find_recipe("own", "cpu"), None)
    assert start is not None
    assert recipe.start == start.name
    assert recipe == choose_start(find_recipe("own", "cpu"), "drawn/multirn-rounds")[0]
    other, nothing = choose_start(replace(find_recipe("own", "cpu"), model="clevr/lstm", arguments=()), None)
    assert (other.model, other.start, nothing) == ("clevr/lstm", "", None)


def test_a_row_of_a_table_keeps_its_model() -> None:
    with pytest.raises(BcnError, match="trains sort-of-clevr/multirn-h, and sort-of-clevr/multirn are weights"):
        choose_start(find_recipe("table3/multirn-h", "cpu"), "sort-of-clevr/multirn")


def test_the_model_is_that_of_the_weights(tmp_path: Path) -> None:
    recipe, start = choose_start(find_recipe("own", "cpu"), "clevr/multirn-h")
    assert start is not None
    assert (recipe.model, recipe.start) == ("clevr/multirn-h", start.name)
    assert recipe.arguments == (("final_relu", True),), "the weights decide what follows their BCN"
    assert start.name.startswith("clevr/multirn-h@")
    scratch, nothing = choose_start(find_recipe("own", "cpu"), "none")
    assert (scratch.start, nothing) == ("", None)
    assert fingerprint(scratch) != fingerprint(recipe)
    with pytest.raises(BcnError, match=r"does not fit the model: .* start from weights of the same model"):
        start.load_into(bcn.create_model("clevr/multirn-h", vocab_size=5, num_answers=3))
    with pytest.raises(BcnError, match="neither shipped nor a path"):
        choose_start(find_recipe("own", "cpu"), "clevr/multirm-h")
    with pytest.raises(BcnError, match="leave data out"):
        bcn.train(own_layout(tmp_path / "mine"), data=tmp_path)


def test_weights_of_the_same_name_differ_by_their_checksum(tmp_path: Path) -> None:
    names = set()
    for seed in (0, 1):
        run = bcn.train(own_layout(tmp_path / "mine"), runs=tmp_path / "runs", seed=seed, **SCRATCH)
        names.add(Start.read("mine", run.path).name)
    assert len(names) == 2
