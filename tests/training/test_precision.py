"""Precision, parts of a batch, deterministic operators and compilation: what they change, and what they leave."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.blobs import install, plain
from helpers.command import run_bcn
from helpers.small_runs import SGD, assert_same_weights, train_small
from torch import nn

from bcn.errors import BcnError
from bcn.layers.relation import MultiRelation, PairRelation
from bcn.paper.tables import find_recipe
from bcn.training.distributed import Ranks
from bcn.training.interrupts import Stop
from bcn.training.loop import Trainer
from bcn.training.recipe import Optim, check
from bcn.training.run import run_id
from bcn.training.runtime import Runtime, arithmetic
from bcn.training.splits import Splits


@pytest.mark.parametrize("name", ["table3/multirn-h", "table3/rn"])
def test_bf16_trains_within_tolerance_of_float32(name: str, tmp_path: Path) -> None:
    begun = train_small(name, tmp_path, Runtime("cpu"), replace(SGD, lr=1e-12))
    exact = train_small(name, tmp_path, Runtime("cpu"), SGD)
    rounded = train_small(name, tmp_path, Runtime("cpu"), SGD, precision="bf16")
    assert all(tensor.dtype == begun[key].dtype for key, tensor in rounded.items())
    moved, error = (
        sum(float((ours[key] - exact[key]).square().sum()) for key in exact if exact[key].is_floating_point()) ** 0.5
        for ours in (begun, rounded)
    )
    assert 0 < error < 0.1 * moved


@pytest.mark.parametrize("layer", [MultiRelation(2, sizes=(4, 4), broadcast=None), PairRelation(2, sizes=(4, 4))])
def test_sums_over_objects_stay_in_float32(layer: nn.Module) -> None:
    """Added up in bfloat16, 400 objects that give 1 each are 256."""
    for name, parameter in layer.named_parameters():
        nn.init.constant_(parameter, float("bias" in name))
    with torch.autocast("cpu", torch.bfloat16):
        total = layer(torch.rand(1, 2, 20, 20))
    assert total.dtype == torch.float32
    assert set(total.flatten().tolist()) == {400.0 if isinstance(layer, MultiRelation) else 400.0**2}


def test_the_precision_is_on_record(tmp_path: Path) -> None:
    words = ["train", "table3/multirn-h", "--scale", "smoke", "--runs", tmp_path, "--set", "data.train=64"]
    run_bcn(*words, "--precision", "bf16", "--set", "epochs=1", "--set", "curriculum_epochs=0", "--deterministic")
    (run,) = tmp_path.iterdir()
    for name in ("manifest.json", "record.json"):
        content = json.loads((run / name).read_text())
        assert content["recipe"]["precision"] == "bf16"
        assert (content["device"], content["deterministic"], content["compile"]) == ("cpu", True, False)
        assert "precision=bf16" in content["overrides"]


def test_runs_of_before_keep_their_names() -> None:
    recipe = replace(find_recipe("table3/multirn-h", "smoke"), arguments=(("final_relu", True),))
    assert run_id(recipe, 0) == "table3-multirn-h-smoke-0-5dde6515"
    assert len({run_id(replace(recipe, **change), 0) for change in ({}, {"precision": "tf32"}, {"accumulate": 2})}) == 3


@pytest.mark.parametrize("precision", ["float32", "tf32", "bf16"])
def test_settings_of_torch_are_those_of_before_afterwards(precision: str) -> None:
    def settings() -> tuple[bool, ...]:
        cuda, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
        return cuda.allow_tf32, cudnn.allow_tf32, torch.are_deterministic_algorithms_enabled()

    before = settings()
    with arithmetic(precision, deterministic=True):  # type: ignore[arg-type]
        assert settings() == (precision != "float32", precision != "float32", True)
    assert settings() == before


def test_a_step_in_parts_is_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of 3, 2 and 2 images; the model has no BatchNorm, and there is no dropout."""
    install(monkeypatch.setitem)
    models = []
    for parts in (1, 3):
        recipe = replace(plain("smoke"), optim=Optim("sgd", 0.1, momentum=0.9, clip_norm=0.5), accumulate=parts)
        trainer = Trainer(recipe, 0, Splits.open(recipe, None), ranks=Ranks(), stop=Stop())
        batches = trainer.read(np.arange(7), 0, pieces=parts)
        assert [len(batch.image) for batch in batches] == ([7] if parts == 1 else [3, 2, 2])
        loss = trainer.step(trainer.stage[0].loss, *batches, answers=7)
        models.append({"loss": loss, **trainer.state.model.state_dict()})
    assert_same_weights(models[1], models[0], 1e-6)


def test_a_compiled_loss_trains_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the code that torch writes left out: that takes a minute, and is not the package's."""
    calls: list[object] = []

    def compile_eagerly(module: nn.Module) -> object:
        calls.append(module)
        return original(module)

    original = partial(torch.compile, backend="eager")
    monkeypatch.setattr(torch, "compile", compile_eagerly)
    ours = train_small("table3/multirn-h", tmp_path / "compiled", Runtime("cpu", compile=True), SGD)
    theirs = train_small("table3/multirn-h", tmp_path / "plain", Runtime("cpu"), SGD)
    assert calls
    assert_same_weights(ours, theirs, 1e-4)


def test_what_is_not_accepted() -> None:
    recipe = find_recipe("table3/multirn-h", "smoke")
    with pytest.raises(BcnError, match=r"accumulate=0.*1 to the batch size"):
        check(replace(recipe, accumulate=0))
    with pytest.raises(BcnError, match="accepted are auto, yes and no"):
        Runtime(data_on_device="maybe").image_limit(torch.device("cpu"))
    with pytest.raises(BcnError, match=r"precision.*fp8.*float32.*tf32.*bf16"):
        run_bcn("train", "table3/multirn-h", "--scale", "smoke", "--precision", "fp8")
