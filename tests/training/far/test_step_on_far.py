"""What a step asks of a GPU, counted on the device of `helpers.far`: few operators, and never a value.

The host runs ahead of a GPU as long as it does not have to wait for a value; and what a small model costs there is
mostly the launching of operators. What this saves in time is not known: there is no GPU here.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.annotated_clevr import annotated_clevr
from helpers.far import Trace
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from bcn.bench.gpu import Steps
from bcn.bench.trace import Trace as Counted
from bcn.models.question_encoder import QuestionEncoder, lengths
from bcn.paper.tables import find_recipe
from bcn.training.distributed import Ranks
from bcn.training.interrupts import Stop
from bcn.training.loop import Trainer
from bcn.training.recipe import Auxiliary, Recipe
from bcn.training.splits import Splits

BUDGET = 250
"""operators of a step on CLEVR that are no views; with the LSTM of the CPU there were 1,900"""


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return annotated_clevr(tmp_path_factory.mktemp("far") / "clevr-like-v1")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BCN_CACHE", str(tmp_path))


def trace_step(recipe: Recipe, data: Path | None, device: torch.device, *, epoch: int = 0) -> tuple[Trace, Trace]:
    """What reading a batch asks of the device, and what a step does; not the first, which makes what is kept."""
    trainer = Trainer(recipe, 0, Splits.open(recipe, data), ranks=Ranks(device=device), stop=Stop())
    trainer.state.position.epoch = epoch
    for _ in range(2):
        with Trace() as load:
            batch = trainer.load(np.arange(recipe.batch_size))
        with Trace() as step:
            loss = trainer.step(trainer.stage[0].loss, batch, answers=7)
            trainer.state.count(loss, answers=7, seconds=0, cpu_seconds=0)
    return load, step


def test_a_step_on_clevr_stays_within_its_operators(scenes: Path, far: torch.device) -> None:
    recipe = replace(find_recipe("table4/multirn-h", "smoke"), optim=find_recipe("table4/multirn-h", "paper").optim)
    _, step = trace_step(replace(recipe, data=replace(recipe.data, train=6), batch_size=6), scenes, far)
    assert step.operators["far::cudnn_rnn"] == step.operators["far::cudnn_rnn_backward"] == 1
    assert step.operators["aten::_fused_adam_"] == 1
    assert step.operators.total() <= BUDGET, step.operators.most_common(12)


def without_copies(trace: Trace | Counted) -> dict[str, int]:
    """The benchmark counts a copy as one operator; the device is asked for memory first, and then to fill it."""
    parts = ("_to_copy", "copy_", "empty", "empty_strided", "zeros", "zero_", "scalar_tensor", "fill_")
    return {name: count for name, count in trace.operators.items() if count and name.split("::")[1] not in parts}


def test_the_benchmark_counts_what_the_device_is_asked_for(far: torch.device) -> None:
    """`bcn bench gpu`, against the count of the device itself; no step of the recipe for a GPU waits for it.

    In float32: this device has no autocast.
    """
    recipe = replace(
        find_recipe("fast/multirn-h", "paper"), word_embeddings="random", batch_size=2, precision="float32"
    )
    steps = Steps(recipe, far)
    with steps.batches:
        steps.run(2)
        with Trace() as seen, Counted("far") as counted:
            steps.run(1)
    assert 100 < counted.operators.total() <= seen.operators.total() <= BUDGET + 50  # clipping and an EMA besides Adam
    assert without_copies(counted) == without_copies(seen)
    assert counted.operators["aten::_fused_adam_"] == 1
    assert counted.reads.total() == seen.reads.total() == 0
    assert counted.peak_bytes > 2 * 10 * 256 * 256 * 4  # g's second layer


@pytest.mark.parametrize("name", ["table4/multirn", "table4/film-pixels", "table4/q-type", "table3/multirn-h"])
def test_no_step_waits_for_a_value(name: str, scenes: Path, far: torch.device) -> None:
    recipe = find_recipe(name, "smoke")
    recipe = replace(recipe, optim=replace(recipe.optim, clip_norm=1.0, ema_decay=0.9))
    load, step = trace_step(recipe, scenes if "table4" in name else None, far)
    assert (+step.reads, +step.uploads, +load.reads) == ({}, {}, {})
    assert load.uploads.total() > 1


@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_no_auxiliary_step_waits_for_a_value(epoch: int, scenes: Path, far: torch.device) -> None:
    recipe = find_recipe("table4/multirn", "smoke")
    recipe = replace(recipe, auxiliary=Auxiliary(1, 1), epochs=3, optim=find_recipe("table4/multirn", "cpu").optim)
    load, step = trace_step(recipe, scenes, far, epoch=epoch)
    assert (+step.reads, +step.uploads, +load.reads) == ({}, {}, {})


def test_a_read_does_not_go_unnoticed(far: torch.device) -> None:
    with Trace() as trace:
        tensor = torch.arange(3.0).to(far)
        float(tensor[0]), tensor[tensor > 1], tensor.tolist(), tensor.nonzero(), torch.tensor([1.0, 2.0], device=far)
    assert trace.reads.total() == 4
    assert trace.uploads.total() == 2
    assert trace.operators.total() > 4


def test_questions_are_read_as_torch_reads_them(far: torch.device) -> None:
    """nn.LSTM with the encoder's parameters, over sentences packed by torch; some are asked twice."""
    torch.manual_seed(0)
    encoder = QuestionEncoder(30)
    question = torch.randint(1, 30, (3, 5, 12))
    question[0, 1, 4:], question[1, 2, 1:], question[2, 0], question[1, 1] = 0, 0, 0, question[0, 0]
    reference = nn.LSTM(50, 128, 2, batch_first=True, bidirectional=True)
    for layer, weights in enumerate(encoder.lstm):
        for direction, suffix in enumerate(("", "_reverse")):
            parts = {"weight_ih": weights.weight_ih, "weight_hh": weights.weight_hh, "bias_ih": weights.bias}
            for name, part in parts.items():
                getattr(reference, f"{name}_l{layer}{suffix}").data = part[direction].data
            getattr(reference, f"bias_hh_l{layer}{suffix}").data.zero_()
    token_UL = question.flatten(0, 1)
    packed = pack_padded_sequence(
        encoder.embedding(token_UL), lengths(token_UL), batch_first=True, enforce_sorted=False
    )
    expected = reference(packed)[1][0][-2:].transpose(0, 1).reshape(3, 5, 256)
    here = encoder(question)
    here.square().sum().backward()
    gradients = [parameter.grad for parameter in encoder.parameters()]
    encoder.zero_grad()
    there = encoder.to(far)(question.to(far))
    there.square().sum().backward()
    torch.testing.assert_close(there.cpu(), expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(here, expected, rtol=1e-5, atol=1e-6)
    for parameter, gradient in zip(encoder.parameters(), gradients, strict=True):
        assert parameter.grad is not None
        torch.testing.assert_close(parameter.grad.cpu(), gradient, rtol=1e-4, atol=1e-5)
