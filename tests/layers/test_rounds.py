"""Broadcast after asking: against one object and one question at a time, with real concatenations."""

import copy
from typing import cast

import pytest
import torch
from torch import Tensor

from bcn import create_model
from bcn.errors import BcnError
from bcn.layers.coordinates import coordinate_planes
from bcn.layers.pointwise import ConcatConv1x1
from bcn.layers.rounds import RoundsRelation
from bcn.models.balance import balance_broadcast
from bcn.models.cost import count_parameters


def by_hand(layer: RoundsRelation, map_CHW: Tensor, question_D: Tensor) -> Tensor:
    """The equations of the module's docstring for one image and one question."""
    height, width = map_CHW.shape[1:]
    planes = coordinate_planes(height, width, layer.planes, layer.origin)
    places = [(y, x) for y in range(height) for x in range(width)]
    seen = [torch.cat([map_CHW[:, y, x], planes[:, y, x], question_D]) for y, x in places]

    def linear(conv: torch.nn.Module, source: Tensor) -> Tensor:
        value: Tensor = conv.weight[:, :, 0, 0] @ source + conv.bias
        return value

    hidden = [linear(layer.first, source).relu() for source in seen]
    for says, hears in zip(layer.says, layer.hears, strict=True):
        said = torch.stack([linear(says, each) for each in hidden])
        vector = said.max(dim=0).values
        hidden = [
            linear(hears, torch.cat([each, vector, source])).relu() for each, source in zip(hidden, seen, strict=True)
        ]
    return torch.stack([linear(layer.g, each).relu() for each in hidden]).sum(dim=0)


@pytest.mark.parametrize("rounds", [0, 1, 3])
@pytest.mark.parametrize("planes", ["xyr", ""])
def test_it_computes_the_equations(rounds: int, planes: str) -> None:
    torch.manual_seed(0)
    layer = RoundsRelation(5, 4, 6, rounds=rounds, planes=planes)
    map_BCHW, question_BQD = torch.randn(2, 5, 3, 2), torch.randn(2, 3, 4)
    expected = torch.stack(
        [
            torch.stack([by_hand(layer, image, question) for question in questions])
            for image, questions in zip(map_BCHW, question_BQD, strict=True)
        ]
    )
    torch.testing.assert_close(layer(map_BCHW, question_BQD), expected)
    torch.testing.assert_close(layer(map_BCHW, question_BQD[:, 1]), expected[:, 1])


def test_the_fused_form_agrees_with_the_plain_one() -> None:
    """64 channels in single precision go through the loops in C, where there are any; in double precision nothing."""
    torch.manual_seed(0)
    fast = RoundsRelation(5, 4, 64, rounds=2)
    plain = copy.deepcopy(fast).double()
    map_BCHW, question_BQD = torch.randn(3, 5, 4, 4), torch.randn(3, 2, 4)
    for layer, dtype in ((fast, torch.float32), (plain, torch.float64)):
        weight_BQW = torch.linspace(-1, 1, 64, dtype=dtype)
        (layer(map_BCHW.to(dtype), question_BQD.to(dtype)) * weight_BQW).sum().backward()
    for (name, one), other in zip(fast.named_parameters(), plain.parameters(), strict=True):
        assert one.grad is not None, name
        assert other.grad is not None, name
        scale = float(other.grad.abs().max())
        torch.testing.assert_close(one.grad.double(), other.grad, rtol=0, atol=1e-4 * scale)


def test_where_a_vector_comes_from_is_known_with_a_mask_too() -> None:
    torch.manual_seed(0)
    layer, before = RoundsRelation(5, 4, 8, rounds=1), torch.randn(2, 3, 6, 8)
    says = cast(ConcatConv1x1, layer.says[0])
    value, position = layer.pooled(says, before)
    there = torch.ones(2, 6, dtype=torch.bool)
    same, where = layer.pooled(says, before, there)
    torch.testing.assert_close(same, value)
    assert torch.equal(where, position)
    there[:, 0] = False
    assert (layer.pooled(says, before, there)[1] > 0).all()


def test_the_states_are_what_the_objects_hold() -> None:
    """Before the first round an object knows nothing of the others."""
    torch.manual_seed(0)
    layer = RoundsRelation(5, 4, 8, rounds=2)
    map_BCHW, question_BQD = torch.randn(1, 5, 2, 2), torch.randn(1, 3, 4)
    other = map_BCHW.clone()
    other[..., 1, 1] += 5  # the last object
    states, others = (list(layer.states(seen, question_BQD)) for seen in (map_BCHW, other))
    assert [state.shape for state in states] == [(1, 3, 4, 8)] * 3
    is_same = [torch.equal(one[:, :, :3], another[:, :, :3]) for one, another in zip(states, others, strict=True)]
    assert is_same == [True, False, False]
    torch.testing.assert_close(layer.sum_over_objects(states[-1]), layer(map_BCHW, question_BQD))


def test_one_object_hears_of_another_in_one_round() -> None:
    """Without a round the answer is a sum of what each object says by itself; with one it is not."""
    torch.manual_seed(0)
    map_BCHW, question = torch.randn(1, 5, 1, 2), torch.randn(1, 4)
    other = map_BCHW.clone()
    other[..., 1] = torch.randn(1, 5, 1)
    both, first, second = map_BCHW.clone(), map_BCHW.clone(), other.clone()
    first[..., 0] = 0
    second[..., 0] = 0
    for rounds, is_sum in ((0, True), (1, False)):
        layer = RoundsRelation(5, 4, 8, rounds=rounds)
        changed = layer(other, question) - layer(both, question)
        alone = layer(second, question) - layer(first, question)
        assert torch.allclose(changed, alone, atol=1e-5) == is_sum


def test_the_size_is_as_the_prototype_says() -> None:
    assert count_parameters(create_model("sort-of-clevr/multirn-rounds")) == 185_714


@torch.no_grad()
def test_every_round_is_balanced() -> None:
    torch.manual_seed(0)
    model = create_model("sort-of-clevr/multirn-rounds")
    images, questions = torch.rand(32, 3, 75, 75), torch.rand(32, 5, 11).round()
    balance_broadcast(model, images, questions)
    seen: list[dict[str, float]] = []

    def visit(layer: torch.nn.Module, sources: dict[str, Tensor]) -> None:
        parts = layer.weight[:, :, 0, 0].split([source.shape[-1] for source in sources.values()], dim=1)
        moved = {}
        for (name, source), part in zip(sources.items(), parts, strict=True):
            moved[name] = float((source.flatten(0, -2) @ part.T).var(0, correction=0).mean().sqrt())
            if name == "broadcast":
                vector = source.flatten(0, -2)
                torch.testing.assert_close(vector.mean(0), torch.zeros(96), atol=1e-3, rtol=0)
                torch.testing.assert_close(vector.std(0, correction=0), torch.ones(96), atol=1e-3, rtol=0)
        seen.append(moved)

    model.relation(model.features(images), questions, visit=visit)
    first, _, heard, _, again, last = seen
    assert first == pytest.approx({"objects": 1, "planes": 1, "question": 1}, rel=1e-3)
    everything = {"hidden": 1, "broadcast": 0.5, "objects": 1, "planes": 1, "question": 1}
    assert heard == pytest.approx(everything, rel=1e-3)
    assert again == pytest.approx(everything, rel=1e-3)
    assert last == pytest.approx({"hidden": 1}, rel=1e-3)


def test_a_map_of_other_channels_is_refused() -> None:
    with pytest.raises(BcnError, match="accepted is"):
        RoundsRelation(5, 4)(torch.zeros(1, 6, 2, 2), torch.zeros(1, 4))
