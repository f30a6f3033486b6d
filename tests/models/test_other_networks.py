"""BCNs in the networks of torchvision and timm: they train, and torch's tools read them."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
import torch
from helpers.torchvision import import_torchvision
from torch import Tensor, fx, nn
from torch.utils.flop_counter import FlopCounterMode

from bcn import BroadcastBlock, BroadcastConv, insert_broadcast
from bcn.models.insert import OnNHWC

vision = import_torchvision().models
create_feature_extractor = import_module("torchvision.models.feature_extraction").create_feature_extractor
timm = pytest.importorskip("timm")

SIZES = (16, 16)


def vgg11() -> nn.Module:
    """Its convolutions; the rest is a hundred million weights."""
    return vision.vgg11(init_weights=False).features


def trains(network: nn.Module, image: Tensor) -> None:
    """A step in training mode reaches every new parameter and what comes before them."""
    network.train()
    outputs = network(image)
    (outputs - 1).square().mean().backward()
    assert all(parameter.grad is not None for parameter in network.parameters())


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize(
    ("build", "after"),
    [
        (vision.resnet18, "bn1"),
        (vision.resnet18, "layer1.0.bn2"),
        (vision.resnet18, "layer1.0.conv1"),
        (vision.resnet18, "layer3"),
        (vgg11, "0"),
        (vgg11, "1"),
        (vision.mobilenet_v2, "features.0.0"),
        (vision.mobilenet_v2, "features.3.conv.1"),
        (vision.mobilenet_v2, "features.3"),
    ],
)
def test_they_train_although_what_follows_works_in_place(
    build: Callable[[], nn.Module], after: str, residual: bool
) -> None:
    image = torch.rand(2, 3, 64, 64)
    network = insert_broadcast(build(), after, sizes=SIZES, residual=residual, image=image)
    trains(network, image)


@pytest.mark.parametrize(("after", "channels", "residual"), [("features.1", 96, True), ("features.3.0", 192, False)])
def test_maps_with_channels_last_are_recognised(after: str, channels: int, residual: bool) -> None:
    network, image = vision.swin_t(), torch.rand(2, 3, 64, 64)
    before = network.eval()(image)
    insert_broadcast(network, after, sizes=SIZES, residual=residual, image=image)
    (inserted,) = (module for module in network.modules() if isinstance(module, OnNHWC))
    assert inserted.block.reduce.channels == (channels, 16, 3)
    assert torch.equal(network.eval()(image), before) == residual
    trains(network, image)


@pytest.mark.parametrize("last", [False, True])
def test_as_many_channels_as_rows_and_columns(last: bool) -> None:
    """Swin has 96 channels of 96 x 96 positions for images of 384: another width tells which are which."""

    class Order(nn.Module):
        def forward(self, map_BCHW: Tensor) -> Tensor:
            return map_BCHW.permute(0, 2, 3, 1) if last else map_BCHW

    network = nn.Sequential(nn.Conv2d(3, 16, 4, stride=4), Order(), nn.Identity())
    insert_broadcast(network, "1", sizes=SIZES, image=torch.zeros(1, 3, 64, 64))
    assert isinstance(network[1].broadcast, OnNHWC) == last
    image = torch.rand(1, 3, 64, 48)
    assert network(image).shape == ((1, 16, 12, 16) if last else (1, 16, 16, 12))


def test_in_the_place_of_timms_attention() -> None:
    """timm initialises every convolution again, after the block has; the block still changes nothing at first."""
    arguments: dict[str, Any] = {"num_classes": 5, "zero_init_last": False}
    network = timm.create_model("resnet18", block_args={"attn_layer": BroadcastBlock}, **arguments)
    plain = timm.create_model("resnet18", **arguments)
    missing, unexpected = plain.load_state_dict(network.state_dict(), strict=False)
    assert not missing
    assert unexpected
    image = torch.rand(2, 3, 64, 64)
    torch.testing.assert_close(network.eval()(image), plain.eval()(image), rtol=0, atol=0)
    assert sum(isinstance(module, BroadcastBlock) for module in network.modules()) == 8
    trains(network, image)


@pytest.mark.parametrize("after", ["layer3", "layer2.0", "bn1"])
def test_torch_fx_traces_them(after: str) -> None:
    network = insert_broadcast(vision.resnet18(num_classes=5), after, sizes=SIZES, image=torch.zeros(1, 3, 64, 64))
    image = torch.rand(2, 3, 64, 64)
    expected = network.eval()(image)
    traced = fx.symbolic_trace(network)
    assert torch.equal(traced(image), expected)
    traced.train()(image).sum().backward()
    assert network.get_submodule(after).broadcast.reduce.weight.grad.any()


def test_features_are_extracted_after_them() -> None:
    network = insert_broadcast(vision.resnet18(), "layer3", sizes=SIZES, image=torch.zeros(1, 3, 64, 64)).eval()
    seen: list[Tensor] = []
    handle = network.layer3.register_forward_hook(lambda _, __, output: seen.append(output))
    image = torch.rand(2, 3, 64, 64)
    network(image)
    handle.remove()
    extractor = create_feature_extractor(network, {"layer3.broadcast": "map"})
    assert torch.equal(extractor(image)["map"], seen[0])


def test_layers_stay_whole_under_fx() -> None:
    network = nn.Sequential(nn.Conv2d(3, 8, 3), BroadcastBlock(8, SIZES), BroadcastConv(8, SIZES))
    traced = fx.symbolic_trace(network)
    assert [node.target for node in traced.graph.nodes if node.op == "call_module"] == ["0", "1", "2"]
    image = torch.rand(2, 3, 9, 7)
    assert torch.equal(traced(image), network(image))


def test_operations_are_counted_that_run_in_c() -> None:
    """FlopCounterMode counts two for a multiply-accumulate, and sees each 1x1 convolution."""
    layer, image = BroadcastConv(8, (16, 32, 64)), torch.rand(2, 8, 10, 5)
    with FlopCounterMode(display=False) as counter:
        layer(image)
    assert counter.get_total_flops() == 2 * (2 * 50 * (8 * 16 + 16 * 32 + 32 * 64) + 50 * 3 * 16)
