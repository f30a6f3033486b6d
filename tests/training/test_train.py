"""Training as a user meets it: what it learns, what it writes, what it refuses."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.blobs import SIZES, install, normed, plain
from helpers.command import exit_code
from torch import nn

import bcn.training.progress
from bcn.data.dataset import Batch
from bcn.data.registry import open_dataset
from bcn.errors import BcnError
from bcn.io import read_record, with_checksum, write_record
from bcn.training.checkpoint import load_checkpoint, save_checkpoint
from bcn.training.loop import Trainer, train
from bcn.training.metrics import evaluate
from bcn.training.recipe import Data, Optim, Recipe, from_json
from bcn.training.run import find_run, run_id
from bcn.training.weights import load_model, read_weights


@pytest.fixture(autouse=True)
def blobs(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch.setitem)


def weights(run: Path, name: str = "last") -> dict[str, torch.Tensor]:
    return read_weights(run / f"{name}.safetensors")[0]


def equal(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Recipe, Path, dict[str, Any]]:
    """A recipe that learns, its run and its record."""
    runs = tmp_path_factory.mktemp("runs")
    recipe = replace(plain("smoke"), data=Data("blobs", train=400), optim=Optim("adam", 0.01, ema_decay=0.9), epochs=6)
    with pytest.MonkeyPatch.context() as patch:
        install(patch.setitem)
        record = train(recipe, seed=0, runs=runs, threads=1)
    return recipe, runs / run_id(recipe, 0), record


def test_a_run_learns(learned: tuple[Recipe, Path, dict[str, Any]]) -> None:
    _, _, record = learned
    assert record["metrics"]["test"]["all"]["accuracy"] > 0.9
    assert record["metrics"]["test"]["all"]["total"] == 97
    assert record["metrics"]["test"]["localisation"] < 0.2
    assert record["curve"][-1]["loss"] < 0.7 * record["curve"][0]["loss"]


def test_a_record_says_what_was_run(learned: tuple[Recipe, Path, dict[str, Any]]) -> None:
    recipe, run, record = learned
    assert record == read_record(run / "record.json", "")
    assert from_json(record["recipe"]) == recipe
    assert (record["seed"], record["overridden"], record["threads"], record["ranks"]) == (0, False, 1, 1)
    assert record["data"]["test"] == open_dataset("blobs", "test").checksum()
    assert record["versions"]["torch"] == torch.__version__
    assert (run / "record.json").stat().st_size < 10_000


def test_a_record_counts_steps_answers_and_seconds(learned: tuple[Recipe, Path, dict[str, Any]]) -> None:
    _, _, record = learned
    assert (record["steps"], record["questions"]) == (6 * 57, 6 * 57 * 7)
    seconds, speed = record["train_seconds"], record["questions_per_second"]  # both rounded to a tenth
    assert (seconds - 0.051) * (speed - 0.051) < 2394 < (seconds + 0.051) * (speed + 0.051)
    assert seconds <= record["seconds"]


def test_a_record_counts_parameters_and_macs(learned: tuple[Recipe, Path, dict[str, Any]]) -> None:
    _, run, record = learned
    assert record["parameters"] == sum(p.numel() for p in load_model(run)[0].parameters())
    convolutions = 10 * 10 * 8 * (25 + 1) + 4 * 4 * 8 * (8 * 9 + 1)
    assert record["macs"] == convolutions + (3 + 2) * (8 * 4 * 4 + 1)


def test_the_curve_of_a_record_has_its_best_epoch(learned: tuple[Recipe, Path, dict[str, Any]]) -> None:
    _, _, record = learned
    assert [point["epoch"] for point in record["curve"]] == list(range(1, 7))
    best = max(record["curve"], key=lambda point: (point["accuracy"], -point["val_loss"]))
    assert record["best_epoch"] == best["epoch"]


def test_the_best_weights_are_those_of_the_best_epoch(tmp_path: Path) -> None:
    recipe = replace(plain("smoke"), epochs=4, optim=Optim("sgd", 0.02, momentum=0.9, clip_norm=1.0))
    record = train(recipe, seed=1, runs=tmp_path)
    run = tmp_path / run_id(recipe, 1)
    model, description = load_model(run)
    validation = evaluate(model, open_dataset("blobs", "val"), batch_size=4)
    best = record["curve"][record["best_epoch"] - 1]
    assert validation.correct / validation.total == pytest.approx(best["accuracy"], abs=1e-6)
    assert description["epoch"] == record["best_epoch"]
    counts = evaluate(model, open_dataset("blobs", "test"), batch_size=4)
    assert counts.correct == record["metrics"]["test"]["all"]["correct"]
    model.load_state_dict(weights(run))
    last = evaluate(model, open_dataset("blobs", "test"), batch_size=4)
    assert last.correct / 97 == pytest.approx(record["last"]["accuracy"], abs=1e-6)


def test_the_seed_decides_everything(tmp_path: Path) -> None:
    recipe = replace(normed("smoke"), epochs=1)
    for name in ("a", "b"):
        torch.manual_seed(hash(name) % 1000)  # what happened before must not matter
        train(recipe, seed=5, runs=tmp_path / name)
    train(recipe, seed=6, runs=tmp_path / "c")
    a, b = (weights(tmp_path / name / run_id(recipe, 5)) for name in "ab")
    assert equal(a, b)
    assert not equal(a, weights(tmp_path / "c" / run_id(recipe, 6)))


@pytest.mark.parametrize("where", ["loss", "weights"])
def test_a_loss_that_is_not_finite_stops_with_its_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    recipe = plain("smoke")
    step = Trainer.step

    def poisoned(self: Trainer, model: nn.Module, batch: Batch, *, answers: int) -> torch.Tensor:
        loss = step(self, model, batch, answers=answers)
        if self.state.position.step == 7 and where == "weights":
            next(self.state.model.parameters()).data[0] = math.inf
        return loss * math.nan if self.state.position.step == 7 and where == "loss" else loss

    monkeypatch.setattr(Trainer, "step", poisoned)
    with pytest.raises(BcnError, match=r"not a finite number at step (8|9) \(epoch 2\).*last good checkpoint"):
        train(recipe, seed=0, runs=tmp_path)
    found = load_checkpoint(tmp_path / run_id(recipe, 0) / "checkpoint")
    assert found is not None
    assert found[1]["position"]["step"] == 5
    assert all(tensor.isfinite().all() for tensor in found[0].values())


def test_the_smallest_numbers_are_flushed_while_training_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny, seen, step = torch.tensor([1e-40]), [], Trainer.step

    def watched(*arguments: object, **options: object) -> torch.Tensor:
        seen.append(float(tiny * 2))
        return step(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Trainer, "step", watched)
    train(plain("smoke"), seed=0, runs=tmp_path, threads=1)
    assert seen
    assert not any(seen)
    assert float(tiny * 2) > 0


def test_a_finished_run_is_reused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = replace(plain("smoke"), epochs=1)
    record = train(recipe, seed=0, runs=tmp_path)
    monkeypatch.setattr(Trainer, "fit", None)
    assert train(recipe, seed=0, runs=tmp_path) == record


def test_nothing_is_held_out_when_all_is_trained_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SIZES, "train+val", 53)
    recipe = replace(plain("smoke"), epochs=1, data=replace(plain("smoke").data, split="train+val"))
    record = train(recipe, seed=0, runs=tmp_path)
    assert record["best_epoch"] is None
    assert record["metrics"]["test"]["all"]["accuracy"] == record["last"]["accuracy"]
    assert "accuracy" not in record["curve"][0]
    assert load_model(tmp_path / record["run"])[1]["epoch"] == 1


def test_an_overridden_run_is_marked(tmp_path: Path) -> None:
    runs = ("--scale", "smoke", "--runs", str(tmp_path), "--set", "epochs=1")
    assert exit_code("train", "blobs/plain", *runs, "--set", "optim.lr=0.01") == 0
    (run,) = tmp_path.iterdir()
    for name in ("manifest.json", "record.json"):
        written = json.loads((run / name).read_text())
        assert written["overridden"] is True
        assert written["overrides"] == ["epochs=1", "optim.lr=0.01"]


def test_eval_of_a_run_and_of_a_weights_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = train(replace(plain("smoke"), epochs=2), seed=0, runs=tmp_path)
    run = tmp_path / record["run"]
    capsys.readouterr()
    for given in (run, run / "best.safetensors"):
        picture = tmp_path / "confusion.png"
        options = ("--json", "--confusion", str(picture))
        assert exit_code("eval", str(given), *options) == 0
        assert json.loads(capsys.readouterr().out)["metrics"] == record["metrics"]["test"]
        assert picture.read_bytes().startswith(b"\x89PNG")
    assert exit_code("eval", str(run), "--split", "val") == 0
    assert "localisation error" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "table3/multirnh"), "unknown recipe 'table3/multirnh': did you mean 'table3/multirn-h'"),
        (("train", "blobs/plain", "--scale", "cup"), "did you mean 'cpu'"),
        (("train", "blobs/plain", "--set", "optim.rl=1"), "did you mean 'optim.lr'"),
        (("train", "blobs/plain", "--set", "batch_size=0", "--set", "optim.lr=-1"), "65536), optim.lr=-1.0 (acc"),
        (("train", "blobs/plain", "--set", "optim.milestones=3,-1"), "optim.milestones=3,-1"),
        (("train", "blobs/plain", "--seed", "9" * 30), "a seed is a whole number from 0 to 2^63 - 1"),
        (("train", "blobs/plain", "--set", "model=stl10/baseline"), "stl10/baseline cannot read blobs"),
        (("train", "blobs/plain", "--set", "data.name=blob"), "unknown data set 'blob': did you mean 'blobs'"),
        (("train", "blobs/plain", "--runs", "a-file"), "choose another directory with --runs"),
        (("train", "table3/multirn", "--scale", "smoke", "--set", "localise=true"), "has no centres to localise"),
        (("train", "blobs/plain", "--set", "curriculum_epochs=1"), "blobs has no curriculum"),
        (("train", "blobs/plain", "--set", "augment=true"), "blobs has no augmentation; train with augment=false"),
        (("train", "table3/mlp", "--scale", "smoke", "--set", "arguments.num_answers=9"), "instead of (1, 20, 10)"),
        (
            ("train", "table3/mlp", "--scale", "smoke", "--set", "arguments.num_answers=²"),
            "does not take num_answers='²'",
        ),
        (("train", "table1/bcn", "--data", "nowhere", "--scale", "smoke"), "nowhere"),
        (("eval", "nowhere"), "unknown weights"),
        (("eval", "."), "not the directory of a run"),
        (("eval", "a-file"), "not a whole safetensors file"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BCN_CACHE", str(tmp_path / "cache"))
    Path("a-file").write_text("not a directory, not weights")
    assert exit_code(*arguments) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.startswith("bcn: ")
    assert said.count("\n") == 1
    assert not Path("runs").exists()


def test_a_run_directory_of_another_recipe_is_refused(tmp_path: Path) -> None:
    recipe = plain("smoke")
    train(replace(recipe, epochs=1), seed=0, runs=tmp_path)
    (other,) = tmp_path.iterdir()
    other.rename(tmp_path / run_id(recipe, 0))
    with pytest.raises(BcnError, match="holds a run of another recipe or seed"):
        train(recipe, seed=0, runs=tmp_path)
    assert find_run(tmp_path / run_id(recipe, 0)).recipe.epochs == 1


def change(**fields: Any) -> Callable[[Any, Any], None]:
    return lambda tensors, state: state.update(fields)


OTHER_VERSIONS: dict[str, Callable[[Any, Any], None]] = {
    "field": lambda tensors, state: state["position"].update(age=3),
    "no field": lambda tensors, state: state.pop("recent"),
    "weights": lambda tensors, state: tensors.update({"kind.weight": torch.ones(1, 2)}),
    "optimiser": lambda tensors, state: state["optimiser"].update(param_groups=[]),
    "no optimiser": change(optimiser="Adam"),
    "position": change(position=[1, 2]),
    "step": lambda tensors, state: state["position"].update(index="one"),
    "lines": change(metrics=[1, None]),
    "no lines": change(metrics=7),
}


@pytest.mark.parametrize("damage", OTHER_VERSIONS)
def test_a_checkpoint_of_another_version_is_refused(
    tmp_path: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = replace(plain("smoke"), epochs=1)
    run = tmp_path / train(recipe, seed=0, runs=tmp_path)["run"]
    (run / "record.json").unlink()
    found = load_checkpoint(run / "checkpoint")
    assert found is not None
    tensors, state = found
    step = state["position"]["step"]
    OTHER_VERSIONS[damage](tensors, state)
    save_checkpoint(run / "checkpoint", step, tensors, state)
    with pytest.raises(BcnError, match=rf"{run.name}/checkpoint: .*use the version that wrote it, or remove"):
        train(recipe, seed=0, runs=tmp_path)
    assert load_checkpoint(run / "checkpoint") is not None
    if damage in ("field", "position", "step", "lines", "no lines"):
        assert exit_code("doctor", run) == 2
        assert "does not say where in the run it was saved: remove it" in capsys.readouterr().out


@pytest.fixture
def finished(tmp_path: Path) -> tuple[Recipe, Path, dict[str, Any]]:
    """A run of one epoch."""
    recipe = replace(plain("smoke"), epochs=1)
    record = train(recipe, seed=0, runs=tmp_path)
    return recipe, tmp_path / record["run"], record


def test_a_damaged_record_is_named(finished: tuple[Recipe, Path, dict[str, Any]]) -> None:
    recipe, run, record = finished
    for content, key_words in {
        "{}": "lacks run, metrics, ranks, seconds",
        json.dumps(with_checksum({key: value for key, value in record.items() if key != "metrics"})): "lacks metrics;",
        "{": ": Expecting property name",
        "[]": ": it is no JSON object",
    }.items():
        (run / "record.json").write_text(content)
        with pytest.raises(BcnError, match=rf"record\.json ?{key_words}.*remove it"):
            train(recipe, seed=0, runs=run.parent)


@pytest.mark.parametrize("name", ["record.json", "manifest.json"])
def test_a_flipped_bit_is_refused_in_one_sentence(
    finished: tuple[Recipe, Path, dict[str, Any]], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, run, _ = finished
    text = (run / name).read_text()
    digits = [place for place, letter in enumerate(text) if letter == "0"]
    for place in (digits[0], digits[len(digits) // 2], digits[-1]):
        (run / name).write_text(text[:place] + "2" + text[place + 1 :])
        assert (
            exit_code("train", "blobs/plain", "--scale", "smoke", "--runs", str(run.parent), "--set", "epochs=1") == 2
        )
        assert f"{name} is damaged: its checksum is wrong" in capsys.readouterr().err


def test_a_record_that_contradicts_itself_is_refused(finished: tuple[Recipe, Path, dict[str, Any]]) -> None:
    recipe, run, record = finished
    record["metrics"]["test"]["all"]["accuracy"] = 0.225
    (run / "record.json").write_text(json.dumps(with_checksum(record)))
    with pytest.raises(BcnError, match=r"contradicts itself: all of test has accuracy 0.225 for \d+ of 97; remove it"):
        train(recipe, seed=0, runs=run.parent)


def test_damaged_lines_of_metrics_are_left_out(finished: tuple[Recipe, Path, dict[str, Any]]) -> None:
    recipe, run, record = finished
    (run / "record.json").unlink()
    with open(run / "metrics.jsonl", "ab") as file:
        file.write(b'\xff\xfe\n{"step": 1}\n')
    again = train(recipe, seed=0, runs=run.parent)
    assert (again["metrics"], again["curve"]) == (record["metrics"], record["curve"])


def test_a_damaged_manifest_is_named(finished: tuple[Recipe, Path, dict[str, Any]]) -> None:
    recipe, run, _ = finished
    manifest = read_record(run / "manifest.json", "")
    del manifest["recipe"]
    write_record(run / "manifest.json", manifest)
    with pytest.raises(BcnError, match=r"manifest\.json lacks recipe.*move"):
        train(recipe, seed=0, runs=run.parent)


def test_plain_lines_off_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bcn.training.progress, "PLAIN_SECONDS", 0.0)
    train(replace(plain("smoke"), epochs=1), seed=0, runs=tmp_path)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 6  # five steps and an epoch
    assert lines[2].startswith("blobs/plain: step 3/5, epoch 1, loss ")
    assert "answers/s" in lines[2]
    assert lines[2].endswith("left")
