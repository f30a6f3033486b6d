"""BroadcastBlock: one shape in and out, nothing changed at first, everything trained after that."""

import pytest
import torch
from torch import Tensor, nn

import bcn
from bcn import BcnError, BroadcastBlock, insert_broadcast
from bcn.models.balance import balance_broadcast
from bcn.models.reference import reference_model


@pytest.fixture(scope="module")
def digits() -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.rand(4, 1, 128, 128, generator=generator)


def trained_baseline() -> nn.Module:
    """Weights that come with the package, 96 % right on Scaled-MNIST."""
    return bcn.load("scaled-mnist/baseline").model.eval()


@pytest.mark.parametrize("after", ["before", "before.0.conv", "before.1.norm", ["before.0", "before.1", "after.0"]])
def test_a_trained_network_answers_as_before(after: str | list[str], digits: Tensor) -> None:
    network = trained_baseline()
    before = network(digits)
    weights = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    insert_broadcast(network, after, sizes=(64, 64, 128), residual=True)
    for was, now in zip(before, network(digits), strict=True):
        assert torch.equal(now, was)
    state = network.state_dict()
    assert all(torch.equal(state[name], tensor) for name, tensor in weights.items())
    blocks = [module for module in network.modules() if isinstance(module, BroadcastBlock)]
    assert len(blocks) == (1 if isinstance(after, str) else len(after))


def test_and_learns_from_then_on(digits: Tensor) -> None:
    network = insert_broadcast(trained_baseline(), "before", sizes=(16, 16), residual=True, final_relu=False)
    block = next(module for module in network.modules() if isinstance(module, BroadcastBlock))
    start = {name: parameter.clone() for name, parameter in block.named_parameters()}
    optimiser = torch.optim.SGD(block.parameters(), lr=0.1)
    for _ in range(2):  # the first step moves gamma, the second all else
        optimiser.zero_grad()
        network(digits)[0].logsumexp(1).mean().backward()
        optimiser.step()
    assert all(not torch.equal(parameter, start[name]) for name, parameter in block.named_parameters())


def test_reducing_it_keeps_what_a_relu_has_given() -> None:
    block, features = BroadcastBlock(24, (16, 16), residual=False), torch.randn(2, 24, 9, 7)
    assert torch.equal(block(features.relu()), features.relu())
    assert torch.equal(block(features), features.relu())
    block(features).square().sum().backward()
    assert block.reduce.weight.grad[:, 24:].any()


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("pool", ["max", "average"])
def test_it_is_what_the_docstring_says(residual: bool, pool: str) -> None:
    torch.manual_seed(0)
    block = BroadcastBlock(8, (16, 12), residual=residual, pool=pool, planes="xy").double()
    with torch.no_grad():
        for parameter in block.parameters():
            parameter.normal_()
    features = torch.randn(3, 8, 5, 6, dtype=torch.float64, requires_grad=True)
    joined = torch.cat([features, block.broadcast(features)], 1)
    reduced = nn.functional.conv2d(joined, block.reduce.weight, block.reduce.bias)
    expected = features + block.gamma.view(-1, 1, 1) * reduced if residual else reduced.relu()
    torch.testing.assert_close(block(features), expected, rtol=0, atol=1e-10)
    torch.testing.assert_close(reference_model(block)(features), expected, rtol=0, atol=1e-10)
    gradients = torch.autograd.grad(expected.sin().sum(), [features, *block.parameters()])
    again = torch.autograd.grad(block(features).sin().sum(), [features, *block.parameters()])
    for one, other in zip(again, gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


@pytest.mark.parametrize("residual", [True, False])
def test_what_follows_may_work_in_place(residual: bool) -> None:
    block = BroadcastBlock(8, (16, 16), residual=residual)
    network = nn.Sequential(nn.Conv2d(3, 8, 3), block, nn.ReLU(inplace=True), nn.Conv2d(8, 2, 3))
    network(torch.rand(2, 3, 16, 16)).sum().backward()


def test_balancing_leaves_the_start_as_it_is() -> None:
    images = torch.rand(64, 3, 12, 12)
    for residual in (True, False):
        block = BroadcastBlock(8, (16, 16), residual=residual)
        network = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), block)
        before = network(images)
        balance_broadcast(network, images)
        assert torch.equal(network(images), before)
        vector, _ = block.broadcast.pooled(network[:2](images))
        torch.testing.assert_close(vector.std(0, correction=0), torch.ones(16), rtol=0, atol=1e-4)


def test_compiles_and_exports() -> None:
    torch._dynamo.reset()
    block = BroadcastBlock(8, (16, 16))
    network = nn.Sequential(nn.Conv2d(3, 8, 3), block)
    block.gamma.data.fill_(1)
    image = torch.rand(2, 3, 16, 16)
    compiled = torch.compile(network, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(image), network(image))
    torch.testing.assert_close(torch.export.export(network, (image,)).module()(image), network(image))


def test_of_several_places_one_that_cannot_be_leaves_all_as_they_were(digits: Tensor) -> None:
    network = trained_baseline()
    names = [name for name, _ in network.named_modules()]
    with pytest.raises(BcnError, match="one map"):
        insert_broadcast(network, ["before", "head"], sizes=(8,))
    assert [name for name, _ in network.named_modules()] == names
    assert not any(module._forward_hooks for module in network.modules())


def test_a_residual_block_has_no_other_width() -> None:
    with pytest.raises(BcnError, match="reduce_to=5"):
        insert_broadcast(nn.Sequential(nn.Conv2d(3, 8, 3)), "0", residual=True, reduce_to=5)
