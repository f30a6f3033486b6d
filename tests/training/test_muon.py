"""Muon: what it makes of a matrix, and what it leaves to Adam."""

import copy

import pytest
import torch
from torch import Tensor, nn

from bcn.models.registry import create_model
from bcn.training.optim.muon import Muon, find_matrices, orthogonalise


def by_singular_values(matrix: Tensor) -> Tensor:
    """The same by way of the singular values, each brought near 1 by itself, in double precision."""
    left: Tensor
    right: Tensor
    left, values, right = torch.linalg.svd(matrix.double(), full_matrices=False)
    values = values / values.square().sum().sqrt()
    for _ in range(5):
        values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
    return left @ torch.diag(values) @ right


@pytest.mark.parametrize("shape", [(24, 27), (256, 24), (64, 64)])
def test_singular_values_come_near_one(shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    matrix = torch.randn(3, *shape) * torch.rand(shape[1])
    orthogonal = orthogonalise(matrix)
    for given, made in zip(matrix, orthogonal, strict=True):
        torch.testing.assert_close(made.double(), by_singular_values(given), rtol=1e-3, atol=1e-4)
        values = torch.linalg.svdvals(made)
        assert values.max() < 1.3
        assert values.median() > 0.6


def test_a_step_of_each_weight() -> None:
    torch.manual_seed(1)
    model = create_model("clevr/multirn", vocab_size=20, num_answers=5)
    image, question = torch.randn(2, 3, 128, 128), torch.randint(1, 20, (2, 3, 6))
    with_adam = create_model("clevr/multirn", vocab_size=20, num_answers=5)
    with_adam.load_state_dict(model.state_dict())
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    for each in (model, with_adam):
        each(image, question).square().sum().backward()
    grads = {name: parameter.grad.clone() for name, parameter in model.named_parameters() if parameter.grad is not None}
    Muon(model, 0.01, momentum=0.9).step()
    torch.optim.Adam(with_adam.parameters(), 0.01).step()
    of_adam = dict(with_adam.named_parameters())
    matrices = find_matrices(model)
    updated = set()
    for name, parameter in model.named_parameters():
        if parameter not in matrices:
            torch.testing.assert_close(parameter, of_adam[name], rtol=1e-5, atol=1e-6)
            continue
        updated.add(name)
        gates = 8 if "lstm" in name else 1
        stacked = grads[name].reshape(gates, -1, parameter.shape[-1] if gates > 1 else grads[name][0].numel())
        for gate, moved in zip(stacked, (parameter - before[name]).reshape(stacked.shape), strict=True):
            wanted = -0.01 * 0.2 * max(gate.shape) ** 0.5 * by_singular_values(gate)
            torch.testing.assert_close(moved.double(), wanted, rtol=1e-2, atol=2e-4)
    adams = {"question_encoder.embedding.weight", "answer.f.4.weight"}
    assert updated == {name for name in before if before[name].dim() > 1 and not name.endswith("bias")} - adams


def test_momentum_and_weight_decay() -> None:
    """Two steps by hand, of the gradient with its L2 term and nine tenths of the momentum."""
    torch.manual_seed(2)
    first = nn.Linear(6, 4, bias=False)
    optimiser, weight = Muon(nn.Sequential(first, nn.Linear(4, 2)), 0.1, momentum=0.9, weight_decay=0.5), first.weight
    expected, momentum = weight.detach().double(), torch.zeros(4, 6, dtype=torch.double)
    for _ in range(2):
        weight.grad = torch.randn(4, 6)
        grad = weight.grad.double() + 0.5 * expected
        momentum = 0.9 * momentum + 0.1 * grad
        expected = expected - 0.1 * 0.2 * 6**0.5 * by_singular_values(0.1 * grad + 0.9 * momentum)
        optimiser.step()
    torch.testing.assert_close(weight.double(), expected, rtol=1e-3, atol=1e-4)


def test_it_goes_on_from_its_state() -> None:
    torch.manual_seed(3)
    models = [nn.Sequential(nn.Linear(6, 4), nn.Linear(4, 2)) for _ in range(2)]
    first, second = (Muon(model, 0.1) for model in models)
    for grad in (torch.randn(4, 6), torch.randn(4, 6)):
        models[0][0].weight.grad, models[0][1].bias.grad = grad, torch.ones(2)
        first.step()
    models[1].load_state_dict(models[0].state_dict())
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    grad = torch.randn(4, 6)
    for model, optimiser in zip(models, (first, second), strict=True):
        model[0].weight.grad, model[1].bias.grad = grad.clone(), torch.ones(2)
        optimiser.step()
    for mine, other in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert torch.equal(mine, other)
