"""A step of training: its mathematics, what a batch holds, the learning rate and the EMA."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers.blobs import install, plain
from torch import nn

from bcn.data.dataset import Batch
from bcn.paper.tables import find_recipe
from bcn.training.distributed import Ranks
from bcn.training.interrupts import Stop
from bcn.training.loop import Trainer
from bcn.training.optim.ema import update_ema
from bcn.training.optim.schedule import learning_rate
from bcn.training.recipe import Optim, Recipe
from bcn.training.splits import Splits


@pytest.fixture(autouse=True)
def blobs(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch.setitem)


def trainer(recipe: Recipe, seed: int = 0) -> Trainer:
    splits = Splits.open(recipe, None)
    return Trainer(recipe, seed, splits, ranks=Ranks(), stop=Stop())


def test_a_step_is_the_textbook_step() -> None:
    """SGD with momentum and weight decay, cross-entropy plus mean square error, the norm of the gradient clipped."""
    recipe = replace(plain("smoke"), optim=Optim("sgd", 0.1, momentum=0.9, weight_decay=0.01, clip_norm=0.5))
    ours = trainer(recipe)
    reference = [p.detach().clone().double() for p in ours.state.model.parameters()]
    velocity = [torch.zeros_like(p) for p in reference]
    reference_model = type(ours.state.model)().double()
    for index in range(3):
        batch = ours.load(ours.splits.train.order(0, seed=0)[7 * index : 7 * (index + 1)])
        loss = ours.step(ours.stage[0].loss, batch, answers=7)
        ours.state.count(loss, answers=7, seconds=0, cpu_seconds=0)
        with torch.no_grad():
            for parameter, value in zip(reference_model.parameters(), reference, strict=True):
                parameter.copy_(value)
        reference_model.zero_grad()
        logits, centre = reference_model(batch.image.double() / 255)
        assert batch.centre is not None
        losses = [
            -logits[i].log_softmax(0)[batch.answer[i]] + (centre[i] - batch.centre[i]).square().mean() for i in range(7)
        ]
        expected = sum(losses) / 7
        expected.backward()
        assert float(loss) == pytest.approx(float(expected.detach()), rel=1e-5)
        gradients = [parameter.grad for parameter in reference_model.parameters() if parameter.grad is not None]
        norm = math.sqrt(sum(float(gradient.square().sum()) for gradient in gradients))
        for place, gradient in enumerate(gradients):
            clipped = gradient * min(1, 0.5 / norm) + 0.01 * reference[place]
            velocity[place] = 0.9 * velocity[place] + clipped
            reference[place] = reference[place] - 0.1 * velocity[place]
    for parameter, value in zip(ours.state.model.parameters(), reference, strict=True):
        torch.testing.assert_close(parameter.double(), value, rtol=1e-4, atol=1e-6)


def test_only_non_relational_questions_at_first() -> None:
    recipe = find_recipe("table3/multirn", "smoke")
    assert recipe.curriculum_epochs == 1
    ours = trainer(recipe)
    batch = ours.load(np.arange(3))
    assert batch.question is not None
    assert batch.kind is not None
    assert batch.question.shape[:2] == batch.answer.shape == batch.kind.shape == (3, 10)
    assert set(batch.kind.flatten().tolist()) <= {0, 1, 2}
    ours.state.position.epoch = 1
    batch = ours.load(np.arange(3))
    assert batch.answer.shape == (3, 20)
    assert batch.kind is not None
    assert set(batch.kind[:, 10:].flatten().tolist()) <= {3, 4, 5}


def test_augmentation_is_decided_by_seed_and_place(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = trainer(replace(plain("smoke"), augment=True))

    def noise(batch: Batch, generator: torch.Generator) -> Batch:
        image = batch.image
        return batch._replace(image=image + torch.randint(0, 50, image.shape, generator=generator, dtype=torch.uint8))

    monkeypatch.setattr(ours.splits.train, "augment", noise, raising=False)
    first, again = ours.load(np.array([1, 2])).image, ours.load(np.array([1, 2])).image
    assert torch.equal(first, again)
    ours.state.position.index = 1
    assert not torch.equal(first, ours.load(np.array([1, 2])).image)


def test_a_batch_in_which_nothing_is_asked_changes_nothing() -> None:
    ours = trainer(replace(plain("smoke"), optim=Optim("sgd", 0.1), localise=False))
    before = {name: tensor.clone() for name, tensor in ours.state.model.state_dict().items()}
    batch = ours.load(np.array([1, 2]))
    unknown = batch._replace(answer=torch.full_like(batch.answer, -100))
    assert float(ours.step(ours.stage[0].loss, unknown, answers=0)) == 0
    for name, tensor in ours.state.model.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_learning_rates() -> None:
    steps = Optim("sgd", 1.0, milestones=(1, 3))
    assert [learning_rate(steps, step, steps_per_epoch=2, total=8) for step in range(8)] == pytest.approx(
        [1, 1, 0.1, 0.1, 0.1, 0.1, 0.01, 0.01]
    )
    cosine = Optim("sgd", 2.0, schedule="warmup-cosine", warmup=0.2)
    rates = [learning_rate(cosine, step, steps_per_epoch=10, total=100) for step in range(100)]
    assert rates[:20] == pytest.approx([2 * (step + 1) / 20 for step in range(20)])
    assert rates[60] == pytest.approx(1.0)  # half way down
    assert rates[20:] == sorted(rates[20:], reverse=True)
    assert 0 < rates[-1] < 0.01


def test_the_ema_is_of_weights_and_statistics() -> None:
    model, ema = (nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)) for _ in range(2))
    ema.load_state_dict(model.state_dict())
    running_mean, batches = (model.get_buffer(f"1.{name}") for name in ("running_mean", "num_batches_tracked"))
    expected = {name: tensor.clone().double() for name, tensor in model.state_dict().items()}
    for step in range(30):
        with torch.no_grad():
            for tensor in (*model.parameters(), running_mean):
                tensor.add_(1.0)
            batches += 1
        update_ema(ema, model, 0.7, step)
        decay = min(0.7, (1 + step) / (10 + step))
        for name, tensor in model.state_dict().items():
            expected[name] = decay * expected[name] + (1 - decay) * tensor.double()
    for name, tensor in ema.state_dict().items():
        if tensor.is_floating_point():
            torch.testing.assert_close(tensor.double(), expected[name], rtol=1e-5, atol=1e-5)
    assert int(ema.get_buffer("1.num_batches_tracked")) == 30
