"""Scaled-MNIST (section 5.2, table 1): blocks of 24 with stride 2, and from the pooled vector the class and the centre.

The head sees no position, only a global average: where a digit is, the features themselves must say.
All models take images (B, 1, H, W) of any size and give logits (B, 10) and centres (B, 2), x and y from 0 to 1.
"""

from torch import Tensor, nn

from bcn.layers.baselines.conv_block import Block
from bcn.layers.baselines.deformable import Deform
from bcn.layers.broadcast import BroadcastConv, SkipConv
from bcn.models.blocks import Broadcasting, Classifier, CoordinateChannels, Skipping, blocks
from bcn.models.registry import register

IMAGE = (1, 128, 128)


class ClassAndCentre(nn.Module):
    """What it is, and where."""

    def __init__(self, channels: int, num_classes: int = 10) -> None:
        super().__init__()
        self.classes = nn.Linear(channels, num_classes)
        self.centre = nn.Linear(channels, 2)

    def forward(self, vector_BC: Tensor) -> tuple[Tensor, Tensor]:
        return self.classes(vector_BC), self.centre(vector_BC)


def _plain(depth: int, width: int = 24) -> Classifier:
    before, after = blocks(1, (width,) * 2), blocks(width, (width,) * (depth - 2))
    return Classifier(before, nn.Identity(), after, ClassAndCentre(width))


def _with(middle: nn.Module, *, channels: int = 24) -> Classifier:
    """The baseline with something between its second and third block; `channels` is what the third block then gets."""
    return Classifier(blocks(1, (24, 24)), middle, blocks(channels, (24,)), ClassAndCentre(24))


@register("scaled-mnist/baseline", image=IMAGE)
def baseline() -> Classifier:
    return _plain(3)


@register("scaled-mnist/baseline-depth4", image=IMAGE)
def baseline_depth4() -> Classifier:
    return _plain(4)


@register("scaled-mnist/baseline-depth5", image=IMAGE)
def baseline_depth5() -> Classifier:
    return _plain(5)


@register("scaled-mnist/baseline-depth5-wide", image=IMAGE)
def baseline_depth5_wide() -> Classifier:
    return _plain(5, 48)


@register("scaled-mnist/deformable", image=IMAGE)
def deformable() -> Classifier:
    """Every block sees its input resampled."""
    first, second, third = (nn.Sequential(Deform(c), Block(c, 24, stride=2)) for c in (1, 24, 24))
    return Classifier(nn.Sequential(first, second), nn.Identity(), third, ClassAndCentre(24))


@register("scaled-mnist/dilated", image=IMAGE)
def dilated() -> Classifier:
    """The second block has dilation 2."""
    before = nn.Sequential(Block(1, 24, stride=2), Block(24, 24, stride=2, dilation=2))
    return Classifier(before, nn.Identity(), blocks(24, (24,)), ClassAndCentre(24))


@register("scaled-mnist/cce", image=IMAGE)
def cce(planes: str = "xyr", origin: str = "centre") -> Classifier:
    return _with(CoordinateChannels(planes, origin), channels=24 + len(planes))


@register("scaled-mnist/skip", image=IMAGE)
def skip(sizes: tuple[int, ...] = (64, 64, 128)) -> Classifier:
    return _with(Skipping(24, SkipConv(24, sizes)))


@register("scaled-mnist/cce-skip", image=IMAGE)
def cce_skip(sizes: tuple[int, ...] = (64, 64, 128), planes: str = "xyr", origin: str = "centre") -> Classifier:
    return _with(Skipping(24, SkipConv(24, sizes, planes=planes, origin=origin)))


@register("scaled-mnist/bcn-average-pool", image=IMAGE)
def bcn_average_pool(
    sizes: tuple[int, ...] = (64, 64, 128), planes: str = "xyr", origin: str = "centre", final_relu: bool = False
) -> Classifier:
    broadcast = BroadcastConv(24, sizes, planes=planes, origin=origin, pool="average", final_relu=final_relu)
    return _with(Broadcasting(24, broadcast))


@register("scaled-mnist/bcn", image=IMAGE)
def bcn(
    sizes: tuple[int, ...] = (64, 64, 128), planes: str = "xyr", origin: str = "centre", final_relu: bool = False
) -> Classifier:
    return _with(Broadcasting(24, BroadcastConv(24, sizes, planes=planes, origin=origin, final_relu=final_relu)))
