"""ResNet-18 for images of 96x96 (appendix A): the first convolution is 3x3 instead of 7x7 and no max-pool follows.

The paper names no other change, so the first convolution keeps its stride of 2, and no convolution has a bias.
"""

import torch
from torch import Tensor, nn

from bcn.layers.broadcast import BroadcastConv
from bcn.models.blocks import Broadcasting, channels_last


class BasicBlock(nn.Module):
    """Two 3x3 convolutions with BatchNorm, added to their input."""

    def __init__(self, channels: int, out_channels: int, *, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out_channels, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.downsample: nn.Module = nn.Identity()
        if stride > 1 or channels != out_channels:
            shortcut = nn.Conv2d(channels, out_channels, 1, stride=stride, bias=False)
            self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(out_channels))

    def forward(self, map_BCHW: Tensor) -> Tensor:
        hidden = torch.relu(self.bn1(self.conv1(map_BCHW)))
        return torch.relu(self.bn2(self.conv2(hidden)) + self.downsample(map_BCHW))


def _stage(channels: int, out_channels: int, *, stride: int) -> nn.Sequential:
    return nn.Sequential(BasicBlock(channels, out_channels, stride=stride), BasicBlock(out_channels, out_channels))


class ResNet18(nn.Module):
    """Submodules are called as everywhere, so that published weights fit but for `conv1` and `fc`.

    >>> ResNet18()(torch.zeros(2, 3, 96, 96)).shape
    torch.Size([2, 10])
    """

    def __init__(self, num_classes: int = 10) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.layer1 = _stage(64, 64, stride=1)
        self.layer2 = _stage(64, 128, stride=2)
        self.layer3 = _stage(128, 256, stride=2)
        self.layer4 = _stage(256, 512, stride=2)
        self.fc = nn.Linear(512, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    @property
    def broadcast(self) -> BroadcastConv | None:
        return next((child.broadcast for child in self.layer3 if isinstance(child, Broadcasting)), None)

    def features(self, image_BCHW: Tensor) -> Tensor:
        """The map that a BCN after the third stage sees."""
        features: Tensor = self.layer3[:2](self._to_layer3(image_BCHW))
        return features

    def _to_layer3(self, image_BCHW: Tensor) -> Tensor:
        stem = torch.relu(self.bn1(self.conv1(channels_last(image_BCHW))))
        map_BCHW: Tensor = self.layer2(self.layer1(stem))
        return map_BCHW

    def forward(self, image_BCHW: Tensor) -> Tensor:
        map_BCHW: Tensor = self.layer4(self.layer3(self._to_layer3(image_BCHW)))
        logits: Tensor = self.fc(map_BCHW.mean(dim=(2, 3)))
        return logits
