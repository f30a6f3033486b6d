"""What would make the loops in C read or write beyond a tensor is refused before a pointer is passed."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from bcn import BcnError, BroadcastConv
from bcn.layers.baselines.deformable import _call, resample
from bcn.layers.fused import native
from bcn.layers.fused.check import pointer
from bcn.layers.fused.max import pooled_max
from bcn.layers.fused.sum import _pooled_sum_backward, pooled_sum
from bcn.layers.relation import MultiRelation, PairRelation


def arguments() -> dict[str, Any]:
    torch.manual_seed(0)
    weights, biases = [torch.rand(64, 128), torch.rand(192, 64)], [torch.rand(64), torch.rand(192)]
    owner = torch.tensor([0, 0, 1])
    return {
        "base": torch.rand(2, 5, 128),
        "shift": torch.rand(3, 128),
        "owner": owner,
        "weights": weights,
        "biases": biases,
    }


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "no objects": lambda given: given.update(base=torch.rand(2, 0, 128)),
    "no layers": lambda given: given.update(weights=[], biases=[]),
    "base without objects": lambda given: given.update(base=torch.rand(2, 128)),
    "a bias too few": lambda given: given["biases"].pop(),
    "a weight too few": lambda given: given["weights"].pop(),
    "a short bias": lambda given: given["biases"].__setitem__(0, torch.rand(8)),
    "a bias of one number": lambda given: given["biases"].__setitem__(1, torch.rand(1)),
    "a bias that is a matrix": lambda given: given["biases"].__setitem__(0, torch.rand(1, 64)),
    "a narrower weight": lambda given: given["weights"].__setitem__(0, torch.rand(64, 64)),
    "a narrower last weight": lambda given: given["weights"].__setitem__(1, torch.rand(192, 32)),
    "a wider base": lambda given: given.update(base=torch.rand(2, 5, 192)),
}
QUESTIONS: dict[str, Callable[[dict[str, Any]], object]] = {
    "a narrower shift": lambda given: given.update(shift=torch.rand(3, 64)),
    "fewer questions": lambda given: given.update(shift=torch.rand(2, 128)),
    "an owner too large": lambda given: given.update(owner=torch.tensor([0, 1, 2])),
    "an owner far too large": lambda given: given.update(owner=torch.tensor([0, 0, 2**62])),
    "an owner below 0": lambda given: given.update(owner=torch.tensor([-1, 0, 1])),
    "owners out of order": lambda given: given.update(owner=torch.tensor([1, 0, 1])),
    "owners that are no whole numbers": lambda given: given.update(owner=torch.tensor([0.0, 0.5, 1.0])),
    "too few owners": lambda given: given.update(owner=torch.tensor([0, 1])),
}
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["c", "torch"])


def convert(given: dict[str, Any], dtype: torch.dtype) -> dict[str, Any]:
    def to(x: Any) -> Any:
        return [to(part) for part in x] if isinstance(x, list) else x.to(dtype) if x.dtype == torch.float32 else x

    return {name: to(x) for name, x in given.items()}


@DTYPES
@pytest.mark.parametrize("name", [*CHANGES, *QUESTIONS])
def test_the_sum_refuses(name: str, dtype: torch.dtype) -> None:
    given = arguments()
    pooled_sum(*given.values())
    (CHANGES | QUESTIONS)[name](given)
    with pytest.raises(BcnError, match="accepted"):
        pooled_sum(*convert(given, dtype).values())


@DTYPES
@pytest.mark.parametrize("name", [name for name in CHANGES if name != "no layers"])
def test_the_maximum_refuses(name: str, dtype: torch.dtype) -> None:
    given = arguments()
    CHANGES[name](given)
    given = convert(given, dtype)
    with pytest.raises(BcnError, match="accepted"):
        pooled_max(given["base"], given["weights"], given["biases"])


def test_without_questions_nothing_is_computed() -> None:
    given = arguments()
    given.update(shift=given["shift"][:0], owner=given["owner"][:0])
    assert pooled_sum(*given.values()).shape == (0, 192)


@pytest.mark.skipif(not native.vector_width(), reason="the loops run in torch here")
@pytest.mark.parametrize("name", [*QUESTIONS, "a short gradient", "few bits", "bits of another type"])
def test_the_backward_pass_refuses(name: str) -> None:
    given = arguments()
    grad, positive = torch.rand(3, 192), torch.zeros(3, 5, 24, dtype=torch.uint8)
    if name in QUESTIONS:
        QUESTIONS[name](given)
    grad = torch.rand(3, 64) if name == "a short gradient" else grad
    positive = positive[:, :, :8] if name == "few bits" else positive
    positive = positive.float() if name == "bits of another type" else positive
    with pytest.raises(BcnError, match="accept"):
        _pooled_sum_backward(grad, *given.values(), positive)


@pytest.mark.skipif(not native.vector_width(), reason="the loops run in torch here")
@pytest.mark.parametrize("position", [-1, 5, 2**62])
def test_positions_beyond_the_map_are_refused(position: int) -> None:
    given = arguments()
    layers = given["base"], given["weights"], given["biases"]
    value, positions = native.max_forward(*layers)
    positions[1, 7] = position
    with pytest.raises(BcnError, match="accepted are 0 to 4"):
        native.max_backward(torch.ones_like(value), positions, *layers)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.rand(4, 5),
        torch.rand(4, 6).double(),
        torch.rand(6, 4).t(),
        torch.rand(4, 12)[:, ::2],
        torch.rand(4, 6, device="meta"),
    ],
    ids=["shape", "type", "order", "stride", "device"],
)
def test_a_pointer_is_made_of_a_checked_tensor_only(tensor: Tensor) -> None:
    assert pointer(torch.rand(4, 6), (4, 6)).value
    assert pointer(None, (4, 6)).value is None
    with pytest.raises(BcnError, match="the loop in C accepts"):
        pointer(tensor, (4, 6))


@pytest.mark.parametrize(
    "make", [lambda: MultiRelation(8, 4, (64, 64), broadcast=None), lambda: PairRelation(8, 4, (64, 64))]
)
def test_layers_whose_parameters_were_replaced_are_refused(make: Callable[[], Any]) -> None:
    image, question = torch.rand(2, 8, 5, 5), torch.rand(2, 3, 4)
    changes: list[dict[str, Any]] = [
        {"bias": None},
        {"bias": torch.nn.Parameter(torch.rand(8))},
        {"weight": torch.nn.Parameter(torch.rand(64, 32, 1, 1))},
    ]
    for change in changes:
        relation = make()
        for name, value in change.items():
            setattr(relation.g.rest[0], name, value)
        with pytest.raises(BcnError, match="accepted"):
            relation(image, question)
    layer = BroadcastConv(8, (64, 64))
    layer.k.rest[0].bias = None
    with pytest.raises(BcnError, match="has no bias"):
        layer(image)


def test_widths_and_layers_beyond_the_buffers_are_left_to_torch() -> None:
    base = torch.rand(1, 2, 64)
    assert native.supports(base, [torch.rand(64, 64)] * 8) == (native.vector_width() > 0)
    assert not native.supports(base, [torch.rand(64, 64)] * 9)
    assert not native.supports(base, [])
    assert not native.supports(base, [torch.empty(2 * native.MAX_WIDTH, 64)])
    assert not native.supports(torch.empty(1, 2, 0), [torch.empty(64, 0)])


def test_resampling_refuses_offsets_of_another_shape() -> None:
    image = torch.rand(2, 3, 4, 5)
    for shape in ((2, 3, 4, 5), (2, 6, 4, 4), (1, 6, 4, 5), (2, 6, 4)):
        with pytest.raises(BcnError, match="accepted is"):
            resample(image, torch.rand(shape))
    if native.load_library("resample"):
        with pytest.raises(BcnError, match="the loop in C accepts"):
            _call("bcn_resample", image, torch.rand(2, 6, 4, 5), torch.rand(2, 3, 4, 5))
