"""STL-10 (section 5.2, table 2): four blocks of 64 with stride 2, and ResNet-18.

All models take images (B, 3, H, W) of any size and give logits (B, 10).
"""

import torch
from torch import nn

from bcn.layers.broadcast import BroadcastConv, SkipConv
from bcn.models.blocks import Broadcasting, Classifier, Skipping, blocks
from bcn.models.insert import insert_broadcast
from bcn.models.registry import register
from bcn.models.resnet import ResNet18

IMAGE = (3, 96, 96)


def _with(middle: nn.Module, num_classes: int) -> Classifier:
    """Something between the third and the fourth block."""
    return Classifier(blocks(3, (64, 64, 64)), middle, blocks(64, (64,)), nn.Linear(64, num_classes))


@register("stl10/baseline", image=IMAGE)
def baseline(num_classes: int = 10) -> Classifier:
    return _with(nn.Identity(), num_classes)


@register("stl10/skip", image=IMAGE)
def skip(sizes: tuple[int, ...] = (128, 128, 256), num_classes: int = 10) -> Classifier:
    return _with(Skipping(64, SkipConv(64, sizes)), num_classes)


@register("stl10/bcn", image=IMAGE)
def bcn(
    sizes: tuple[int, ...] = (128, 128, 256),
    planes: str = "xyr",
    origin: str = "centre",
    num_classes: int = 10,
    final_relu: bool = False,
) -> Classifier:
    broadcast = BroadcastConv(64, sizes, planes=planes, origin=origin, final_relu=final_relu)
    return _with(Broadcasting(64, broadcast), num_classes)


@register("stl10/resnet18", image=IMAGE)
def resnet18(num_classes: int = 10) -> ResNet18:
    return ResNet18(num_classes)


@register("stl10/resnet18-bcn", image=IMAGE)
def resnet18_bcn(
    sizes: tuple[int, ...] = (128, 128, 256),
    planes: str = "xyr",
    origin: str = "centre",
    num_classes: int = 10,
    final_relu: bool = False,
) -> ResNet18:
    model, image = ResNet18(num_classes), torch.zeros(1, 3, 32, 32)
    return insert_broadcast(
        model, "layer3", sizes=sizes, planes=planes, origin=origin, final_relu=final_relu, image=image
    )
