"""The fused reductions: exact in C and in torch, on any number of threads, with memory that does not grow."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from bcn.layers.broadcast import BroadcastConv
from bcn.layers.fused import native
from bcn.layers.fused.max import pooled_max
from bcn.layers.fused.sum import pooled_sum
from bcn.layers.relation import MultiRelation, PairRelation

VECTORS = {16: [16, 8], 8: [8], 4: [4]}.get(native.vector_width(), [])


def by_hand(base: Tensor, shift: Tensor, owner: Tensor, weights: list[Tensor], biases: list[Tensor]) -> Tensor:
    totals = []
    for u in range(len(shift)):
        hidden = (base[owner[u]] + shift[u]).relu()
        for weight, bias in zip(weights, biases, strict=True):
            hidden = (hidden @ weight.t() + bias).relu()
        totals.append(hidden.sum(0))
    return torch.stack(totals)


def problem(images: int, objects: int, owner: list[int], widths: list[int], offset: float = 0.0) -> list[Tensor]:
    """`offset` is taken from all that a ReLU sees, so that most of it is zero, as in trained networks."""
    torch.manual_seed(len(owner) + objects)
    base, shift = torch.randn(images, objects, widths[0]), torch.randn(len(owner), widths[0]) - 3 * offset
    weights = [torch.randn(out, into) / into**0.5 for into, out in pairwise(widths)]
    return [base, shift, torch.tensor(owner), *weights, *(torch.randn(out) / 2 - offset for out in widths[1:])]


def outputs(function: Callable[..., Tensor], tensors: list[Tensor]) -> list[Tensor]:
    base, shift, owner, *rest = (x.clone().requires_grad_(x.is_floating_point()) for x in tensors)
    weights, biases = rest[: len(rest) // 2], rest[len(rest) // 2 :]
    total = function(base, shift, owner, weights, biases)
    grads = torch.autograd.grad(
        (total * torch.linspace(0, 1, total.numel()).view_as(total)).sum(), [base, shift, *rest]
    )
    return [total, *grads]


PROBLEMS: dict[str, Any] = {
    "even": (2, 100, [0] * 20 + [1] * 20, [64, 192]),
    "ragged": (4, 25, [0] * 3 + [1] + [3] * 30, [64, 128]),
    "small": (5, 3, [0, 1, 2, 3, 4], [64, 64]),
    "one row": (1, 1, [0], [64, 64]),
    "wide": (1, 1000, [0, 0], [256, 64]),
    "narrow": (2, 10, [0, 1, 1], [32, 96]),
    "deep": (3, 37, [0] * 5 + [2] * 4, [128, 64, 192, 64]),
    "sparse": (2, 100, [0] * 20 + [1] * 20, [64, 192], 0.8),
    "sparse and deep": (3, 37, [0] * 5 + [2] * 4, [128, 64, 192, 64], 0.5),
    "all zero": (2, 30, [0, 0, 1], [64, 128], 5.0),
}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("width", [*VECTORS, 0], ids=lambda width: f"vector{width}" if width else "torch")
@pytest.mark.parametrize("name", PROBLEMS)
def test_exact(name: str, width: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "vector_width", lambda: width)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        tensors = problem(*PROBLEMS[name])
        found = outputs(pooled_sum, tensors)
    finally:
        torch.set_num_threads(before)
    assert bool(found[0].any()) == (name != "all zero")
    exact = outputs(by_hand, [x.double() if x.is_floating_point() else x for x in tensors])
    for mine, theirs in zip(found, exact, strict=True):
        assert mine.dtype == torch.float32
        assert ((mine - theirs).abs().max() / theirs.abs().max().clamp(min=1)).item() <= 1e-5


@pytest.mark.parametrize("width", [*VECTORS, 0])
def test_what_is_not_a_number_is_not_hidden(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "vector_width", lambda: width)
    base, shift, owner, weight, bias = problem(2, 4, [0, 0, 1], [64, 64])
    base[0, 1, 5] = torch.nan
    total = pooled_sum(base, shift, owner, [weight], [bias])
    assert total[:2].isnan().all()
    assert total[2].isfinite().all()


def kept_bytes(relation: torch.nn.Module, questions: int, size: int) -> int:
    """What the forward pass keeps for the backward pass, without the inputs and the parameters themselves."""
    image, question = torch.rand(2, 4, size, size), torch.rand(2, questions, 6)
    known = {x.untyped_storage().data_ptr() for x in (image, question, *relation.parameters())}
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        relation(image, question)
    return sum(kept.values())


def test_multi_relation_keeps_a_bit_for_each_activation() -> None:
    relation = MultiRelation(4, 6, (64, 64), broadcast=BroadcastConv(4, (8,)))
    growth = kept_bytes(relation, 20, 10) - kept_bytes(relation, 10, 10)
    activations = 2 * 10 * 100 * 64
    per_question = 2 * 10 * (64 + 64 + 8) * 4  # shifts, sums and indices, which no object multiplies
    one = activations // 8 if native.vector_width() else activations
    assert growth <= one + per_question


def test_pair_relation_keeps_a_bit_for_each_last_activation_of_a_pair() -> None:
    relation = PairRelation(4, 6, (64, 64, 64))
    few, many = (kept_bytes(relation, 3, size) for size in (4, 8))
    # Four times the objects are sixteen times the pairs, and what is kept for each object grows by four.
    activations = 2 * 3 * (64**2 - 16**2) * 64
    one = activations // 8 if native.vector_width() else activations
    assert many - few <= one + 3.5 * few


def test_questions_asked_twice_are_computed_once() -> None:
    relation = MultiRelation(4, 6, (64, 64), broadcast=BroadcastConv(4, (8,)))
    image, question = torch.rand(2, 4, 5, 5), torch.rand(2, 3, 6)
    asked = question[:, [0, 1, 2, 1, 0, 0, 2]]
    expected = relation(image, question)[:, [0, 1, 2, 1, 0, 0, 2]]
    with torch.profiler.profile(record_shapes=True) as profile:
        found = relation(image, asked)
    assert torch.equal(found, expected)
    sizes = [event.input_shapes[1] for event in profile.events() if event.name == "bcn::pooled_sum"]
    assert sizes == [[6, 64]]


def max_by_hand(base: Tensor, weights: list[Tensor], biases: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Every position by itself, and the first of the largest."""
    values, positions = [], []
    for image in base:
        hidden = image
        for weight, bias in zip(weights, biases, strict=True):
            hidden = hidden.relu() @ weight.t() + bias
        best = [max(range(len(hidden)), key=channel.tolist().__getitem__) for channel in hidden.t()]
        values.append(torch.stack([hidden[n, k] for k, n in enumerate(best)]))
        positions.append(torch.tensor(best))
    return torch.stack(values), torch.stack(positions)


MAXIMA = {
    "even": (2, 100, [64, 128]),
    "one position": (3, 1, [64, 64]),
    "more positions than a block": (1, 300, [64, 64, 128]),
    "more channels than positions": (3, 5, [128, 64, 256]),
    "narrow": (2, 9, [6, 5]),
}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("width", [*VECTORS, 0], ids=lambda width: f"vector{width}" if width else "torch")
@pytest.mark.parametrize("name", MAXIMA)
def test_maxima_are_exact(name: str, width: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "vector_width", lambda: width)
    images, objects, widths = MAXIMA[name]
    base, _, _, *rest = problem(images, objects, [0], widths)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    found = []
    try:
        for function, dtype in ((pooled_max, torch.float32), (max_by_hand, torch.float64)):
            tensors = [x.to(dtype, copy=True).requires_grad_() for x in (base, *rest)]
            half = len(rest) // 2
            value, position = function(tensors[0], tensors[1 : 1 + half], tensors[1 + half :])
            slope = torch.linspace(-1, 1, value.numel(), dtype=dtype).view_as(value)
            found.append((position, value, *torch.autograd.grad((value.relu() * slope).sum(), tensors)))
    finally:
        torch.set_num_threads(before)
    ours, theirs = found
    assert torch.equal(ours[0], theirs[0])
    for mine, exact in zip(ours[1:], theirs[1:], strict=True):
        assert mine.dtype == torch.float32
        assert ((mine - exact).abs().max() / exact.abs().max().clamp(min=1)).item() <= 1e-5


@pytest.mark.parametrize("width", [*VECTORS, 0])
def test_a_maximum_is_the_first_of_equals_and_hides_nothing(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "vector_width", lambda: width)
    base, _, _, weight, bias = problem(2, 40, [0], [64, 64])
    base[0, 20:] = base[0, :20]
    base[1, 7, 3] = torch.nan
    base[1, 30, 3] = torch.nan
    value, position = pooled_max(base, [weight], [bias])
    assert (position[0] < 20).all()
    assert value[1].isnan().all()
    assert (position[1] == 7).all()
