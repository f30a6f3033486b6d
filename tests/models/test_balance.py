"""Variance-balanced initial weights: after them the statistics are what they say, recomputed here by plain means."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bcn import BroadcastConv, create_model, insert_broadcast
from bcn.errors import BcnError
from bcn.layers.coordinates import coordinate_planes
from bcn.models.balance import balance_broadcast

Samples = tuple[Tensor, Tensor]
MULTIRN = ("sort-of-clevr/multirn", "sort-of-clevr/multirn-h", "sort-of-clevr/multirn-no-bcn")


def built(name: str, **arguments: Any) -> Any:
    torch.manual_seed(0)
    return create_model(name, **arguments)


@pytest.fixture(scope="module")
def batch() -> Samples:
    generator = torch.Generator().manual_seed(1)
    return torch.rand(32, 3, 75, 75, generator=generator), torch.rand(32, 5, 11, generator=generator).round()


def pooled_by_hand(broadcast: Any, map_BCHW: Tensor) -> Tensor:
    """max([F, C] * k) without a last ReLU, position by position."""
    planes = coordinate_planes(map_BCHW.shape[2], map_BCHW.shape[3], broadcast.planes, broadcast.origin)
    hidden = torch.cat([map_BCHW, planes.expand(len(map_BCHW), -1, -1, -1)], 1)
    for index, conv in enumerate(broadcast.k):
        hidden = F.conv2d(hidden.relu() if index else hidden, conv.weight, conv.bias)
    return hidden.flatten(2).amax(2) if broadcast.pool == "max" else hidden.flatten(2).mean(2)


def assert_standard(value_BK: Tensor) -> None:
    torch.testing.assert_close(value_BK.mean(0), torch.zeros(value_BK.shape[1]), atol=1e-4, rtol=0)
    torch.testing.assert_close(value_BK.std(0, correction=0), torch.ones(value_BK.shape[1]), atol=1e-4, rtol=0)


def moved_by(source: Tensor, weight: Tensor) -> float:
    """Standard deviation of the pre-activations over all rows of a source, root mean square over channels."""
    return float((source.flatten(0, -2) @ weight.T).var(0, correction=0).mean().sqrt())


@pytest.mark.parametrize("name", MULTIRN)
@pytest.mark.parametrize("final_relu", [True, False])
@torch.no_grad()
def test_the_statistics_are_what_they_say(name: str, final_relu: bool, batch: Samples) -> None:
    images, questions = batch
    has_bcn = "no-bcn" not in name
    model = built(name, **({"final_relu": final_relu} if has_bcn else {}))
    assert balance_broadcast(model, images, questions) is model
    map_BCHW = model.features(images)  # in training mode, as it was balanced
    relation = model.relation
    of_object, of_vector, of_plane, of_question = relation.g.first.weight.flatten(1).split(
        [24, 256 if has_bcn else 0, 3, 11], 1
    )
    assert moved_by(map_BCHW.permute(0, 2, 3, 1), of_object) == pytest.approx(1, abs=1e-4)
    assert moved_by(coordinate_planes(*map_BCHW.shape[2:]).permute(1, 2, 0), of_plane) == pytest.approx(1, abs=1e-4)
    assert moved_by(questions, of_question) == pytest.approx(1, abs=1e-4)
    if has_bcn:
        value_BK = pooled_by_hand(relation.broadcast, map_BCHW)
        assert_standard(value_BK)
        assert moved_by(value_BK.relu() if final_relu else value_BK, of_vector) == pytest.approx(0.5, abs=1e-4)


def test_only_scales_and_shifts_change_and_nothing_is_random(batch: Samples) -> None:
    fresh, model, again = (built(MULTIRN[1], final_relu=False) for _ in range(3))
    before = torch.random.get_rng_state()
    balance_broadcast(model, *batch)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert model.training
    balance_broadcast(again, *batch)
    changed = {"relation.broadcast.k.2.weight", "relation.broadcast.k.2.bias", "relation.g.0.weight"}
    for (name, was), now, twin in zip(
        fresh.state_dict().items(), model.state_dict().values(), again.state_dict().values(), strict=True
    ):
        assert torch.equal(now, twin), name
        assert torch.equal(was, now) is (name not in changed), name
    was, now = (network.relation.broadcast.k[-1].weight.flatten(1) for network in (fresh, model))
    assert F.cosine_similarity(was, now).min() > 1 - 1e-5, "every channel keeps its direction"


def test_one_balanced_already_stays(batch: Samples) -> None:
    model = balance_broadcast(built(MULTIRN[0], final_relu=False), *batch)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    balance_broadcast(model, *batch)
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(tensor, before[name], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["scaled-mnist/bcn", "scaled-mnist/bcn-average-pool", "stl10/resnet18-bcn"])
@torch.no_grad()
def test_a_bcn_between_blocks(name: str) -> None:
    images = torch.rand(16, 1 if "mnist" in name else 3, 64, 64)
    model = balance_broadcast(built(name, final_relu=False), images)
    map_BCHW = model.features(images)
    assert_standard(pooled_by_hand(model.broadcast, map_BCHW))


@torch.no_grad()
def test_inserted_into_a_network_of_ones_own(batch: Samples) -> None:
    images, _ = batch
    cnn = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Dropout(0.9), nn.Conv2d(8, 4, 3))
    model = insert_broadcast(cnn, after="1", sizes=(16, 16), final_relu=False)
    balance_broadcast(model, images)
    assert model[2].training, "dropout is on again"
    assert not model[1].running_mean.any(), "running statistics stay"
    inserted, map_BCHW = model[1].broadcast, F.batch_norm(model[0](images), None, None, training=True)
    vector_BK = pooled_by_hand(inserted.broadcast, map_BCHW)
    assert_standard(vector_BK)
    weights = inserted.reduce.weight.flatten(1).split([8, 16, 3], 1)
    sources = map_BCHW.permute(0, 2, 3, 1), vector_BK, coordinate_planes(*map_BCHW.shape[2:]).permute(1, 2, 0)
    moved = [moved_by(source, weight) for source, weight in zip(sources, weights, strict=True)]
    assert moved == pytest.approx([1, 0.5, 1], abs=1e-4)


@torch.no_grad()
def test_batch_norm_that_is_frozen_is_balanced_as_it_runs(batch: Samples) -> None:
    images, questions = batch
    model = built(MULTIRN[0], final_relu=False).eval()
    balance_broadcast(model, images, questions)
    assert not model.training
    assert_standard(pooled_by_hand(model.broadcast, model.features(images)))


@torch.no_grad()
def test_a_channel_that_does_not_vary_keeps_its_weights(batch: Samples) -> None:
    images, _ = batch
    layer = BroadcastConv(3, (4, 6), final_relu=False)
    layer.k[-1].weight[2] = 0
    balance_broadcast(layer, images)
    assert not layer.k[-1].weight[2].any()
    assert all(parameter.isfinite().all() for parameter in layer.parameters())


def test_a_network_without_a_bcn_is_refused(batch: Samples) -> None:
    with pytest.raises(BcnError, match="no BCN"):
        balance_broadcast(nn.Conv2d(3, 4, 3), batch[0])


def test_a_bcn_that_runs_twice_is_refused(batch: Samples) -> None:
    layer = BroadcastConv(3, (3,), planes="")
    with pytest.raises(BcnError, match="exactly once"):
        balance_broadcast(nn.Sequential(layer, layer), batch[0])
