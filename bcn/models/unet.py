"""A small U-Net (Ronneberger et al., 2015) for masks, with and without a BCN at its narrowest map. Not in the paper.

B images, C channels, H x W = n pixels, A classes of a pixel.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bcn.layers.baselines.conv_block import Block
from bcn.layers.broadcast import BroadcastConv
from bcn.layers.rows import rows
from bcn.models.blocks import Broadcasting, channels_last
from bcn.models.registry import register

IMAGE = (1, 128, 128)
WIDTHS = (16, 32, 64)


class UNet(nn.Module):
    """Blocks of stride 2, and back, each step beside the map of its size; the class of each pixel: (B, n, A).

    Without a BCN a pixel of the result sees its neighbourhood alone.

    >>> UNet(1, 11, nn.Identity())(torch.rand(2, 1, 40, 30)).shape
    torch.Size([2, 1200, 11])

    Args:
        middle: what is at the narrowest map, of 64 channels.
    """

    def __init__(self, channels: int, num_classes: int, middle: nn.Module) -> None:
        super().__init__()
        first, second, third = WIDTHS
        self.down = nn.ModuleList(
            Block(narrow, wide, stride=2) for narrow, wide in ((channels, first), (first, second), (second, third))
        )
        self.middle = middle
        self.up = nn.ModuleList([Block(third + second, second), Block(second + first, first)])
        self.head = nn.Conv2d(first, num_classes, 1)

    @property
    def broadcast(self) -> BroadcastConv | None:
        return self.middle.broadcast if isinstance(self.middle, Broadcasting) else None

    def features(self, image_BCHW: Tensor) -> Tensor:
        """The map that the BCN sees, where there is one."""
        return self._maps(image_BCHW)[-1]

    def _maps(self, image_BCHW: Tensor) -> list[Tensor]:
        maps = [channels_last(image_BCHW)]
        for block in self.down:
            maps.append(block(maps[-1]))
        return maps[1:]

    def forward(self, image_BCHW: Tensor) -> Tensor:
        *beside, map_BCHW = self._maps(image_BCHW)
        map_BCHW = self.middle(map_BCHW)
        for block, skip_BCHW in zip(self.up, reversed(beside), strict=True):
            larger_BCHW = F.interpolate(map_BCHW, size=skip_BCHW.shape[2:])
            map_BCHW = block(torch.cat([larger_BCHW, skip_BCHW], dim=1))
        logits_BAHW = F.interpolate(self.head(map_BCHW), size=image_BCHW.shape[2:], mode="bilinear")
        return rows(logits_BAHW)


@register("masks/unet", image=IMAGE)
def unet() -> UNet:
    return UNet(1, 11, nn.Identity())


@register("masks/unet-bcn", image=IMAGE)
def unet_bcn(sizes: tuple[int, ...] = (64, 64, 128), final_relu: bool = False) -> UNet:
    return UNet(1, 11, Broadcasting(WIDTHS[-1], BroadcastConv(WIDTHS[-1], sizes, final_relu=final_relu)))
