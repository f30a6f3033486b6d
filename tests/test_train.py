"""Training as a user meets it: what it learns, what it writes, what it refuses."""

import json
import math
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from blobs import install, normed, plain
from torch import nn

import bcn.engine.log
from bcn.cli import main
from bcn.data.registry import open_dataset
from bcn.engine.checkpoint import load_checkpoint, load_weights, save_checkpoint
from bcn.engine.distributed import Ranks
from bcn.engine.evaluate import evaluate
from bcn.engine.optimise import rate, update_average
from bcn.engine.override import override, paths
from bcn.engine.recipe import Data, Optim, Recipe, fingerprint, from_json
from bcn.engine.run import find_run, run_id
from bcn.engine.sets import Sets
from bcn.engine.stop import Stop
from bcn.engine.train import Trainer, train
from bcn.engine.trained import load_trained
from bcn.errors import BcnError
from bcn.paper.recipes import find_recipe


@pytest.fixture(autouse=True)
def blobs(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch.setitem)


def command(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run `bcn` in this process and give its exit code."""
    monkeypatch.setattr("sys.argv", ["bcn", *arguments])
    with pytest.raises(SystemExit) as exit:
        main()
    return int(exit.value.code or 0)


def weights(run: Path, name: str = "last") -> dict[str, torch.Tensor]:
    return load_weights(run / f"{name}.safetensors")[0]


def equal(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_a_run_learns_and_leaves_a_record(tmp_path: Path) -> None:
    recipe = replace(plain("smoke"), data=Data("blobs", train=400), optim=Optim("adam", 0.01, average=0.9), epochs=6)
    record = train(recipe, seed=0, runs=tmp_path, threads=1)
    run = tmp_path / run_id(recipe, 0)
    assert record == json.loads((run / "record.json").read_text())
    assert record["metrics"]["test"]["all"]["accuracy"] > 0.9
    assert record["metrics"]["test"]["all"]["total"] == 97
    assert record["metrics"]["test"]["localisation"] < 0.2
    assert from_json(record["recipe"]) == recipe
    assert (record["seed"], record["overridden"], record["threads"], record["ranks"]) == (0, False, 1, 1)
    assert (record["steps"], record["questions"]) == (6 * 57, 6 * 57 * 7)
    assert record["parameters"] == sum(p.numel() for p in load_trained(run)[0].parameters())
    convolutions = 10 * 10 * 8 * (25 + 1) + 4 * 4 * 8 * (8 * 9 + 1)
    assert record["macs"] == convolutions + (3 + 2) * (8 * 4 * 4 + 1)
    assert record["data"]["test"] == open_dataset("blobs", "test").checksum()
    seconds = record["train_seconds"]  # rounded to a tenth
    assert abs(2394 / record["questions_per_second"] - seconds) < 0.051
    assert seconds <= record["seconds"]
    assert record["versions"]["torch"] == torch.__version__
    assert [point["epoch"] for point in record["curve"]] == list(range(1, 7))
    assert record["curve"][-1]["loss"] < 0.7 * record["curve"][0]["loss"]
    assert (run / "record.json").stat().st_size < 10_000
    best = max(record["curve"], key=lambda point: (point["accuracy"], -point["val_loss"]))
    assert record["best_epoch"] == best["epoch"]


def test_the_best_weights_are_those_of_the_best_epoch(tmp_path: Path) -> None:
    recipe = replace(plain("smoke"), epochs=4, optim=Optim("sgd", 0.02, momentum=0.9, clip=1.0))
    record = train(recipe, seed=1, runs=tmp_path)
    run = tmp_path / run_id(recipe, 1)
    model, description = load_trained(run)
    validation = evaluate(model, open_dataset("blobs", "val"), batch=4)
    best = record["curve"][record["best_epoch"] - 1]
    assert validation.correct / validation.total == pytest.approx(best["accuracy"], abs=1e-6)
    assert description["epoch"] == record["best_epoch"]
    figures = evaluate(model, open_dataset("blobs", "test"), batch=4)
    assert figures.correct == record["metrics"]["test"]["all"]["correct"]
    model.load_state_dict(weights(run))
    last = evaluate(model, open_dataset("blobs", "test"), batch=4)
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


def trainer(recipe: Recipe, seed: int = 0) -> Trainer:
    sets = Sets.open(recipe, None)
    return Trainer(recipe, seed, sets, ranks=Ranks(), stop=Stop())


def test_a_step_is_the_textbook_step() -> None:
    """SGD with momentum and weight decay, cross-entropy plus mean square error, the norm of the gradient clipped."""
    recipe = replace(plain("smoke"), optim=Optim("sgd", 0.1, momentum=0.9, weight_decay=0.01, clip=0.5))
    ours = trainer(recipe)
    reference = [p.detach().clone().double() for p in ours.state.model.parameters()]
    velocity = [torch.zeros_like(p) for p in reference]
    literal = type(ours.state.model)().double()
    for index in range(3):
        batch = ours.load(ours.sets.train.order(0, seed=0)[7 * index : 7 * (index + 1)])
        loss = ours.step(ours.state.model, batch, answers=7)
        ours.state.count(loss, answers=7, seconds=0)
        with torch.no_grad():
            for parameter, value in zip(literal.parameters(), reference, strict=True):
                parameter.copy_(value)
        literal.zero_grad()
        logits, centre = literal(batch.image.double() / 255)
        losses = [
            -logits[i].log_softmax(0)[batch.answer[i]] + (centre[i] - batch.centre[i]).square().mean() for i in range(7)
        ]
        expected = sum(losses) / 7
        expected.backward()
        assert float(loss) == pytest.approx(float(expected.detach()), rel=1e-5)
        gradients = [parameter.grad for parameter in literal.parameters()]
        norm = math.sqrt(sum(float(gradient.square().sum()) for gradient in gradients))
        for place, gradient in enumerate(gradients):
            clipped = gradient * min(1, 0.5 / norm) + 0.01 * reference[place]
            velocity[place] = 0.9 * velocity[place] + clipped
            reference[place] = reference[place] - 0.1 * velocity[place]
    for parameter, value in zip(ours.state.model.parameters(), reference, strict=True):
        torch.testing.assert_close(parameter.double(), value, rtol=1e-4, atol=1e-6)


def test_only_non_relational_questions_at_first() -> None:
    recipe = find_recipe("table3/multirn", "smoke")
    assert recipe.non_relational_first == 1
    ours = trainer(recipe)
    batch = ours.load([0, 1, 2])
    assert batch.question.shape[:2] == batch.answer.shape == batch.kind.shape == (3, 10)
    assert set(batch.kind.flatten().tolist()) <= {0, 1, 2}
    ours.state.position.epoch = 1
    batch = ours.load([0, 1, 2])
    assert batch.answer.shape == (3, 20)
    assert set(batch.kind[:, 10:].flatten().tolist()) <= {3, 4, 5}


def test_augmentation_is_decided_by_seed_and_place(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = trainer(replace(plain("smoke"), augment=True))

    def noise(image: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        return image + torch.randint(0, 50, image.shape, generator=generator, dtype=torch.uint8)

    monkeypatch.setattr(ours.sets.train, "augment", noise, raising=False)
    first, again = ours.load([1, 2]).image, ours.load([1, 2]).image
    assert torch.equal(first, again)
    ours.state.position.index = 1
    assert not torch.equal(first, ours.load([1, 2]).image)


def test_a_batch_in_which_nothing_is_asked_changes_nothing() -> None:
    ours = trainer(replace(plain("smoke"), optim=Optim("sgd", 0.1), localise=False))
    before = {name: tensor.clone() for name, tensor in ours.state.model.state_dict().items()}
    batch = ours.load([1, 2])
    unknown = batch._replace(answer=torch.full_like(batch.answer, -100))
    assert float(ours.step(ours.state.model, unknown, answers=0)) == 0
    assert equal(before, ours.state.model.state_dict())


def test_rates() -> None:
    steps = Optim("sgd", 1.0, milestones=(1, 3))
    assert [rate(steps, step, per_epoch=2, total=8) for step in range(8)] == pytest.approx(
        [1, 1, 0.1, 0.1, 0.1, 0.1, 0.01, 0.01]
    )
    cycle = Optim("sgd", 2.0, schedule="one-cycle", warmup=0.2)
    rates = [rate(cycle, step, per_epoch=10, total=100) for step in range(100)]
    assert rates[:20] == pytest.approx([2 * (step + 1) / 20 for step in range(20)])
    assert rates[60] == pytest.approx(1.0)  # half way down
    assert rates[20:] == sorted(rates[20:], reverse=True)
    assert 0 < rates[-1] < 0.01


def test_the_average_is_of_weights_and_statistics() -> None:
    model, average = (nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)) for _ in range(2))
    average.load_state_dict(model.state_dict())
    expected = {name: tensor.clone().double() for name, tensor in model.state_dict().items()}
    for step in range(30):
        with torch.no_grad():
            for tensor in (*model.parameters(), model[1].running_mean):
                tensor.add_(1.0)
            model[1].num_batches_tracked += 1
        update_average(average, model, 0.7, step)
        decay = min(0.7, (1 + step) / (10 + step))
        for name, tensor in model.state_dict().items():
            expected[name] = decay * expected[name] + (1 - decay) * tensor.double()
    for name, tensor in average.state_dict().items():
        if tensor.is_floating_point():
            torch.testing.assert_close(tensor.double(), expected[name], rtol=1e-5, atol=1e-5)
    assert int(average[1].num_batches_tracked) == 30


@pytest.mark.parametrize("where", ["loss", "weights"])
def test_a_loss_that_is_not_finite_stops_with_its_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    recipe = plain("smoke")
    step = Trainer.step

    def poisoned(self: Trainer, model: nn.Module, batch: object, *, answers: int) -> torch.Tensor:
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


def test_a_finished_run_is_reused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = replace(plain("smoke"), epochs=1)
    record = train(recipe, seed=0, runs=tmp_path)
    monkeypatch.setattr(Trainer, "fit", None)
    assert train(recipe, seed=0, runs=tmp_path) == record


def test_nothing_is_held_out_when_all_is_trained_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("blobs").SIZES, "train+val", 53)
    recipe = replace(plain("smoke"), epochs=1, data=replace(plain("smoke").data, split="train+val"))
    record = train(recipe, seed=0, runs=tmp_path)
    assert record["best_epoch"] is None
    assert record["metrics"]["test"]["all"]["accuracy"] == record["last"]["accuracy"]
    assert "accuracy" not in record["curve"][0]
    assert load_trained(tmp_path / record["run"])[1]["epoch"] == 1


def test_overrides() -> None:
    recipe = plain("smoke")
    changed, changes = override(
        recipe,
        ["optim.lr=0.5", "batch=7", "optim.clip=none", "data.tests=a,b", "localise=false", "arguments.sizes=64,64"],
    )
    assert changes[-1] == "arguments.sizes=64,64"
    assert changed.optim.lr == 0.5
    assert (changed.optim.clip, changed.data.tests, changed.localise) == (None, ("a", "b"), False)
    assert changed.arguments == (("sizes", (64, 64)),)
    assert "batch=7" not in changes  # it was 7
    assert len(changes) == 5
    assert fingerprint(changed) != fingerprint(recipe)
    assert from_json(json.loads(json.dumps(asdict(changed)))) == changed
    assert "optim.schedule" in paths()
    for assignment, message in {
        "optim.lrr=1": "did you mean 'optim.lr'",
        "optim.lr=high": "optim.lr is a number, and was given 'high'",
        "epochs=1.5": "epochs is a whole number",
        "localise=yes": "localise is true or false",
        "optim.name=adan": "did you mean 'adam'",
        "epochs": "path=value",
        "name=x": "unknown field 'name'",
    }.items():
        with pytest.raises(BcnError, match=message):
            override(recipe, [assignment])


@pytest.mark.parametrize(
    ("text", "value"),
    [("10", 10), ("64,", (64,)), ("64,32", (64, 32)), ("²", "²"), ("", ""), (",", ","), ("-1", "-1"), ("9" * 99, None)],
)
def test_an_argument_is_a_number_numbers_or_text(text: str, value: object) -> None:
    changed, _ = override(plain("smoke"), [f"arguments.it={text}"])
    assert changed.arguments == (("it", text if value is None else value),)


def test_a_field_that_is_set_back_is_not_overridden() -> None:
    assert override(plain("smoke"), ["epochs=9", "epochs=4"]) == (plain("smoke"), ())
    assert override(plain("smoke"), ["epochs=9", "epochs=5"])[1] == ("epochs=5",)


def test_the_wording_of_a_recipe_does_not_make_another_run() -> None:
    recipe = plain("smoke")
    assert run_id(replace(recipe, deviations=("said better",)), 3) == run_id(recipe, 3)
    assert run_id(replace(recipe, batch=8), 3) != run_id(recipe, 3)
    assert run_id(recipe, 3).startswith("blobs-plain-smoke-3-")


def test_an_overridden_run_is_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = ("--scale", "smoke", "--runs", str(tmp_path), "--set", "epochs=1")
    assert command("train", "blobs/plain", *runs, "--set", "optim.lr=0.01", monkeypatch=monkeypatch) == 0
    (run,) = tmp_path.iterdir()
    for name in ("manifest.json", "record.json"):
        written = json.loads((run / name).read_text())
        assert written["overridden"] is True
        assert written["overrides"] == ["epochs=1", "optim.lr=0.01"]


def test_eval_of_a_run_and_of_a_weights_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record = train(replace(plain("smoke"), epochs=2), seed=0, runs=tmp_path)
    run = tmp_path / record["run"]
    capsys.readouterr()
    for given in (run, run / "best.safetensors"):
        picture = tmp_path / "confusion.png"
        options = ("--json", "--confusion", str(picture))
        assert command("eval", str(given), *options, monkeypatch=monkeypatch) == 0
        assert json.loads(capsys.readouterr().out)["metrics"] == record["metrics"]["test"]
        assert picture.read_bytes().startswith(b"\x89PNG")
    assert command("eval", str(run), "--split", "val", monkeypatch=monkeypatch) == 0
    assert "localisation error" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "table3/multirnh"), "unknown recipe 'table3/multirnh': did you mean 'table3/multirn-h'"),
        (("train", "blobs/plain", "--scale", "cup"), "did you mean 'cpu'"),
        (("train", "blobs/plain", "--set", "optim.rl=1"), "did you mean 'optim.lr'"),
        (("train", "blobs/plain", "--set", "batch=0", "--set", "optim.lr=-1"), "batch=0, optim.lr=-1.0"),
        (("train", "blobs/plain", "--set", "optim.milestones=3,-1"), "optim.milestones=3,-1"),
        (("train", "blobs/plain", "--seed", "9" * 30), "a seed is a whole number from 0 to 2^63 - 1"),
        (("train", "blobs/plain", "--set", "model=stl10/baseline"), "stl10/baseline cannot read blobs"),
        (("train", "blobs/plain", "--set", "data.name=blob"), "unknown data set 'blob': did you mean 'blobs'"),
        (("train", "blobs/plain", "--runs", "a-file"), "choose another directory with --runs"),
        (("train", "table3/multirn", "--scale", "smoke", "--set", "localise=true"), "has no centres to localise"),
        (("train", "blobs/plain", "--set", "non_relational_first=1"), "blobs does not ask non-relational questions"),
        (("train", "blobs/plain", "--set", "augment=true"), "blobs has no augmentation; train with augment=false"),
        (("train", "table3/mlp", "--scale", "smoke", "--set", "arguments.answers=9"), "instead of (1, 20, 10)"),
        (("train", "table3/mlp", "--scale", "smoke", "--set", "arguments.answers=²"), "does not take answers='²'"),
        (("train", "table1/bcn", "--data", "nowhere", "--scale", "smoke"), "nowhere"),
        (("eval", "nowhere"), "nowhere does not exist"),
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
    assert command(*arguments, monkeypatch=monkeypatch) == 2
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


@pytest.mark.parametrize("damage", ["field", "no field", "weights", "optimiser"])
def test_a_checkpoint_of_another_version_is_refused(tmp_path: Path, damage: str) -> None:
    recipe = replace(plain("smoke"), epochs=1)
    run = tmp_path / train(recipe, seed=0, runs=tmp_path)["run"]
    (run / "record.json").unlink()
    found = load_checkpoint(run / "checkpoint")
    assert found is not None
    tensors, state = found
    if damage == "field":
        state["position"]["age"] = 3
    elif damage == "no field":
        del state["recent"]
    elif damage == "weights":
        tensors["kind.weight"] = torch.ones(1, 2)
    else:
        state["optimiser"]["param_groups"] = []
    save_checkpoint(run / "checkpoint", state["position"]["step"], tensors, state)
    with pytest.raises(BcnError, match=rf"{run.name}/checkpoint: .*use the version that wrote it, or remove"):
        train(recipe, seed=0, runs=tmp_path)
    assert load_checkpoint(run / "checkpoint") is not None


def test_damaged_files_of_a_run_are_named(tmp_path: Path) -> None:
    recipe = replace(plain("smoke"), epochs=1)
    record = train(recipe, seed=0, runs=tmp_path)
    run = tmp_path / record["run"]
    for content, message in {
        "{}": "lacks run, metrics, seconds",
        "[]": "lacks run",
        json.dumps({key: value for key, value in record.items() if key != "metrics"}): "lacks metrics;",
        "{": "cannot be read",
    }.items():
        (run / "record.json").write_text(content)
        with pytest.raises(BcnError, match=rf"record\.json {message}.*remove it to have it written again"):
            train(recipe, seed=0, runs=tmp_path)
    (run / "record.json").unlink()
    with open(run / "metrics.jsonl", "ab") as file:
        file.write(b'\xff\xfe\n{"step": 1}\n')
    again = train(recipe, seed=0, runs=tmp_path)
    assert (again["metrics"], again["curve"]) == (record["metrics"], record["curve"])
    manifest = json.loads((run / "manifest.json").read_text())
    del manifest["recipe"]
    (run / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BcnError, match=r"manifest\.json lacks recipe; move the run's directory away"):
        train(recipe, seed=0, runs=tmp_path)


def test_plain_lines_off_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bcn.engine.log, "PLAIN_SECONDS", 0.0)
    train(replace(plain("smoke"), epochs=1), seed=0, runs=tmp_path)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 6  # five steps and an epoch
    assert lines[2].startswith("blobs/plain: step 3/5, epoch 1, loss ")
    assert "answers/s" in lines[2]
    assert lines[2].endswith("left")


def test_tensorboard_is_an_extra(tmp_path: Path) -> None:
    recipe = replace(plain("smoke"), epochs=1)
    try:
        import tensorboard  # noqa: F401
    except ImportError:
        with pytest.raises(BcnError, match=r"pip install 'bcn\[tensorboard\]'"):
            train(recipe, seed=0, runs=tmp_path, tensorboard=True)
    else:
        train(recipe, seed=0, runs=tmp_path, tensorboard=True)
        assert list(tmp_path.glob("*/tensorboard/events*"))
