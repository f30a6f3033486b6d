"""Models that take objects instead of pixels: padding changes nothing, nor does the order of objects."""

from typing import Any

import pytest
import torch
from torch import Tensor

from bcn import BcnError, balance_broadcast, create_model, list_models
from bcn.models.object_model import ObjectModel

STATES = [name for name in list_models() if name.endswith("-states")]
SETS = [name for name in STATES if name != "sort-of-clevr/mlp-states"]
WITH_VECTOR = ["sort-of-clevr/multirn-states", "sort-of-clevr/multirn-rounds-states"]


def make(name: str, **arguments: Any) -> Any:
    torch.manual_seed(0)
    return create_model(name, **arguments).double()


def scenes() -> tuple[Tensor, Tensor, Tensor]:
    """Three scenes of five objects, of which five, three and one are there, and two questions about each."""
    torch.manual_seed(1)
    objects, question = torch.randn(3, 5, 10).double(), torch.randn(3, 2, 11).double()
    return objects, torch.arange(5) < torch.tensor([[5], [3], [1]]), question


def run(model: Any, *inputs: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Logits and the gradients of a fixed mixture of them."""
    model.zero_grad()
    logits = model(*inputs)
    (logits * torch.linspace(-1, 1, logits.numel()).view_as(logits)).sum().backward()
    return logits.detach(), [parameter.grad.clone() for parameter in model.parameters()]


@pytest.mark.parametrize("name", STATES)
@pytest.mark.parametrize("padding", [7.0, -1e30, float("nan"), float("inf")])
def test_what_padding_holds_is_not_looked_at(name: str, padding: float) -> None:
    model = make(name)
    objects, mask, question = scenes()
    logits, gradients = run(model, objects, mask, question)
    other = objects.masked_fill(~mask[..., None], padding)
    assert not torch.equal(other, objects)
    again, same = run(model, other, mask, question)
    assert torch.equal(again, logits)
    assert all(map(torch.equal, same, gradients))


@pytest.mark.parametrize("name", STATES)
def test_more_padding_changes_nothing(name: str) -> None:
    model = make(name)
    objects, mask, question = scenes()
    logits, gradients = run(model, objects, mask, question)
    padded = torch.cat([objects, torch.randn(3, 4, 10).double()], dim=1)
    again, same = run(model, padded, torch.cat([mask, torch.zeros(3, 4, dtype=torch.bool)], dim=1), question)
    torch.testing.assert_close(again, logits, rtol=0, atol=1e-12)
    for gradient, expected in zip(same, gradients, strict=True):
        torch.testing.assert_close(gradient, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", STATES)
def test_a_padded_scene_is_the_scene_without_padding(name: str) -> None:
    model = make(name)
    objects, mask, question = scenes()
    logits = model(objects, mask, question)
    for scene, present in enumerate((5, 3, 1)):
        alone = model(objects[scene, None, :present], mask[scene, None, :present], question[scene, None])
        torch.testing.assert_close(alone[0], logits[scene], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", SETS)
def test_the_order_of_objects_does_not_matter_and_each_of_them_does(name: str) -> None:
    model = make(name)
    objects, mask, question = scenes()
    logits, order = model(objects, mask, question), torch.tensor([3, 0, 4, 2, 1])
    torch.testing.assert_close(model(objects[:, order], mask[:, order], question), logits, rtol=0, atol=1e-12)
    changed = objects.clone()
    changed[0, 4] = 3 * torch.randn(10)
    assert (model(changed, mask, question) - logits)[0].abs().max() > 1e-6


@pytest.mark.parametrize("pool", ["max", "average"])
def test_the_broadcast_vector_is_pooled_over_the_objects_that_are_there(pool: str) -> None:
    broadcast = make("sort-of-clevr/multirn-states", final_relu=False).broadcast
    broadcast.pool = pool
    objects, mask, _ = scenes()
    vector, position = broadcast.pooled(objects.transpose(1, 2)[:, :, None], mask)
    for scene, present in enumerate((5, 3, 1)):
        said = objects[scene, :present]
        for layer in broadcast.k:
            said = (said if layer is broadcast.k[0] else said.relu()) @ layer.weight[:, :, 0, 0].T + layer.bias
        expected = said.max(dim=0).values if pool == "max" else said.mean(dim=0)
        torch.testing.assert_close(vector[scene], expected)
        assert torch.equal(position[scene], said.argmax(dim=0))


@pytest.mark.parametrize("name", WITH_VECTOR)
def test_balanced_weights_do_not_depend_on_padding(name: str) -> None:
    torch.manual_seed(1)
    objects, question = torch.randn(64, 6, 10).double(), torch.randn(64, 3, 11).double()
    mask = torch.arange(6) < torch.arange(64)[:, None] % 6 + 1
    models = [make(name), make(name)]
    balance_broadcast(models[0], objects, mask, question)
    padded, there = torch.cat([objects, 100 * objects], dim=1), torch.cat([mask, torch.zeros_like(mask)], dim=1)
    balance_broadcast(models[1], padded, there, question)
    for (key, one), other in zip(models[0].state_dict().items(), models[1].state_dict().values(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12, msg=key)
    raw = make(name).parameters()
    assert any(not torch.equal(one, other) for one, other in zip(models[0].parameters(), raw, strict=True))


def test_wrong_inputs_are_refused() -> None:
    model = make("sort-of-clevr/multirn-states")
    objects, mask, question = scenes()
    for wrong, its_mask in ((objects[..., :9], mask), (objects, mask[:, :4]), (objects[0], mask[0])):
        with pytest.raises(BcnError, match=r"accepted are \(B, N, 10\) and \(B, N\)"):
            model(wrong, its_mask, question)
    with pytest.raises(BcnError, match="no object that is there"):
        model(objects, torch.zeros_like(mask), question)
    with pytest.raises(BcnError, match="questions have the shape"):
        model(objects, mask, question[:2])
    with pytest.raises(BcnError, match="accepts up to 12"):
        make("sort-of-clevr/mlp-states")(torch.zeros(1, 13, 10).double(), torch.ones(1, 13).bool(), question[:1])
    assert isinstance(model, ObjectModel)
