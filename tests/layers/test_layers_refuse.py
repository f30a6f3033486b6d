"""What layers refuse, and what their loops in C leave to torch."""

import warnings
from collections.abc import Callable
from operator import methodcaller
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from bcn import BcnError, BroadcastBlock, BroadcastConv, create_model
from bcn.layers.baselines.deformable import Deform
from bcn.layers.broadcast import SkipConv
from bcn.layers.relation import MultiRelation, PairRelation


@pytest.mark.parametrize(
    ("channels", "sizes"), [(8, ()), (-2, (8,)), (0, (8,)), (8, (0,)), (8, 64), (8, (64.0,)), (8, "64")]
)
def test_sizes_that_no_layer_has_are_refused(channels: int, sizes: Any) -> None:
    with pytest.raises(BcnError, match="accepted are whole numbers above 0"):
        BroadcastConv(channels, sizes)
    with pytest.raises(BcnError, match="accepted are whole numbers above 0"):
        MultiRelation(channels, 5, sizes, broadcast=None)


@pytest.mark.parametrize("shape", [(8, 5, 6), (1, 7, 5, 6), (1, 8, 0, 6)])
def test_maps_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    layer = BroadcastConv(8, (64, 64))
    for use in (layer, layer.pooled, layer.activation_map, PairRelation(8), SkipConv(8, (64, 64))):
        with pytest.raises(BcnError, match=r"accepted is \(B, 8, H, W\)"):
            use(torch.rand(shape))


@pytest.mark.parametrize("planes", [None, ["x", "y"], "xz", "xx"])
def test_planes_that_there_are_not_are_refused(planes: Any) -> None:
    with pytest.raises(BcnError, match="accepted is any choice of the letters"):
        BroadcastConv(8, (64,), planes=planes)


def test_second_derivatives_are_refused_where_c_computes_the_first() -> None:
    torch.manual_seed(0)
    for layer in (BroadcastConv(8, (64, 64)), MultiRelation(8, sizes=(64, 64), broadcast=None), Deform(8)):
        given = torch.rand(2, 8, 5, 6, requires_grad=True)
        (grad,) = torch.autograd.grad(layer(given).square().sum(), given, create_graph=True)
        with pytest.raises(RuntimeError):
            grad.square().sum().backward()


def test_what_c_cannot_read_is_left_to_torch() -> None:
    """Tensors that only pretend have shapes; other types and devices among the weights are torch's errors."""
    layer, given = BroadcastConv(8, (64, 64)), torch.rand(2, 8, 5, 6)
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert layer(torch.rand(2, 8, 5, 6)).shape == (2, 67, 5, 6)
    changes: list[Callable[[nn.Module], object]] = [nn.Module.double, nn.Module.half, methodcaller("to", "meta")]
    for change in changes:
        spoiled = BroadcastConv(8, (64, 64))
        change(spoiled.k[1])
        with pytest.raises((RuntimeError, NotImplementedError)):
            spoiled(given)
    for change in changes[:2]:
        relation = MultiRelation(8, sizes=(64, 64), broadcast=None)
        change(relation.g[1])
        with pytest.raises(RuntimeError):
            relation(given)


TRACED: list[tuple[Callable[[], nn.Module], Callable[[int], tuple[Tensor, ...]]]] = [
    (lambda: BroadcastConv(8, (64, 64)), lambda images: (torch.rand(images, 8, 5, 6),)),
    (lambda: BroadcastBlock(64, residual=False), lambda images: (torch.rand(images, 64, 9, 9),)),
    (
        lambda: create_model("sort-of-clevr/multirn-h"),
        lambda images: (torch.rand(images, 3, 75, 75), torch.rand(images, 3, 11)),
    ),
]


@pytest.mark.parametrize(("make", "example"), TRACED)
def test_a_layer_can_be_traced(make: Callable[[], nn.Module], example: Callable[[int], tuple[Tensor, ...]]) -> None:
    """By torch.jit.trace, for maps of one size; what the C loops write into memory no trace would see."""
    layer = make().eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(layer, example(2), check_trace=False)
    for images in (2, 5):
        given = example(images)
        torch.testing.assert_close(traced(*given), layer(*given), rtol=1e-4, atol=1e-4)
