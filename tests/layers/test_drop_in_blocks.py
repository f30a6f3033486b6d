"""The blocks that a BCN is compared with: timm's are the oracle, and all have as many parameters."""

from collections.abc import Callable
from importlib import import_module

import pytest
import torch
import torch.nn.functional as F
from helpers.torchvision import import_torchvision
from torch import Tensor, nn

from bcn.layers.baselines.cbam import Cbam
from bcn.layers.baselines.coord_conv import CoordConv
from bcn.layers.baselines.coordinate_attention import CoordinateAttention
from bcn.layers.baselines.global_context import GlobalContext
from bcn.layers.baselines.self_attention import HEADS, SelfAttention
from bcn.layers.baselines.squeeze_excite import SqueezeExcite
from bcn.layers.coordinates import coordinate_planes
from bcn.models.cost import count_parameters, on_meta
from bcn.models.drop_in import BLOCKS

import_torchvision()
pytest.importorskip("timm")
layers = import_module("timm.layers")


def copy(source: nn.Module, target: nn.Module, names: dict[str, str]) -> None:
    """Random parameters into ours, and the same into timm's."""
    state = target.state_dict()
    for name, parameter in source.named_parameters():
        nn.init.normal_(parameter, std=0.3)
        place = next(place for prefix, place in names.items() if name.startswith(prefix))
        of_target = name.replace(next(prefix for prefix in names if name.startswith(prefix)), place, 1)
        state[of_target].copy_(parameter.detach().view_as(state[of_target]))


@pytest.mark.parametrize(
    ("block", "timms", "names"),
    [
        (SqueezeExcite, lambda: layers.SqueezeExcite(8, rd_channels=12), {"fc": "fc"}),
        (
            GlobalContext,
            lambda: layers.GlobalContext(8, rd_channels=12, fuse_add=True, fuse_scale=False),
            {"weigh": "conv_attn", "norm": "mlp_add.norm", "fc": "mlp_add.fc"},
        ),
        (
            Cbam,
            lambda: import_module("timm.layers.cbam").CbamModule(8, rd_channels=12),
            {"fc": "channel.fc", "conv": "spatial.conv.conv", "norm": "spatial.conv.bn"},
        ),
        (
            CoordinateAttention,
            lambda: import_module("timm.layers.coord_attn").CoordAttn(8, rd_channels=12),
            {"conv": "conv1", "norm": "bn1", "of_rows": "conv_h", "of_columns": "conv_w"},
        ),
    ],
)
@pytest.mark.parametrize("training", [True, False])
def test_they_do_what_timms_do(
    block: type[nn.Module], timms: Callable[[], nn.Module], names: dict[str, str], training: bool
) -> None:
    torch.manual_seed(0)
    ours, theirs = block(8, 12), timms()
    if isinstance(theirs, layers.GlobalContext):
        nn.init.zeros_(theirs.conv_attn.bias)  # which a softmax over positions takes out
        theirs.mlp_add.norm.eps = 1e-5  # torch's
    copy(ours, theirs, names)
    ours, theirs = ours.double().train(training), theirs.double().train(training)
    features = torch.randn(3, 8, 6, 5, dtype=torch.float64)
    torch.testing.assert_close(ours(features), theirs(features), rtol=0, atol=1e-10)


def seen(features: Tensor) -> Tensor:
    planes = coordinate_planes(*features.shape[2:], dtype=features.dtype)
    return torch.cat([features, planes.expand(len(features), -1, -1, -1)], 1)


def test_a_coord_conv_is_a_convolution_over_features_and_coordinates() -> None:
    block, features = CoordConv(8, 12).double(), torch.randn(2, 8, 6, 5, dtype=torch.float64)
    hidden = F.conv2d(seen(features), block.conv.weight, block.conv.bias, padding=1).relu()
    expected = features + F.conv2d(hidden, block.out.weight, block.out.bias)
    torch.testing.assert_close(block(features), expected, rtol=0, atol=1e-10)


def test_self_attention_is_torchs_own() -> None:
    """On a map of at most 8 x 8 positions every position answers, and torch's function is the same."""
    block, features = SelfAttention(8, 12).double(), torch.randn(2, 8, 6, 5, dtype=torch.float64)
    rows = seen(features).flatten(2).transpose(1, 2)
    split = [layer(rows).view(2, 30, HEADS, 3).transpose(1, 2) for layer in (block.query, block.key, block.value)]
    heads = F.scaled_dot_product_attention(*split).transpose(1, 2).reshape(2, 30, 12)
    expected = features + block.out(heads).transpose(1, 2).view(2, 8, 6, 5)
    torch.testing.assert_close(block(features), expected, rtol=0, atol=1e-10)
    assert SelfAttention(8, 12)(torch.randn(1, 8, 20, 11)).shape == (1, 8, 20, 11)


@pytest.mark.parametrize("family", ["scaled-mnist", "stl10"])
def test_all_have_as_many_parameters(family: str) -> None:
    bcn = count_parameters(on_meta(f"{family}-blocks/bcn"))
    for name in BLOCKS:
        assert count_parameters(on_meta(f"{family}-blocks/{name}")) == pytest.approx(bcn, rel=0.01), name
