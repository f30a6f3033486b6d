"""The parts of the models: runs of 3x3 blocks, what table 1 puts between two of them, and the classifier.

B images, C channels, H x W positions, A classes.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from bcn.layers.activation import safe_relu
from bcn.layers.baselines.conv_block import Block
from bcn.layers.broadcast import BroadcastConv, SkipConv
from bcn.layers.coordinates import check_planes, planes_like
from bcn.layers.pointwise import ConcatConv1x1
from bcn.layers.rows import rows
from bcn.layers.tracing import whole_under_fx


def channels_last(image_BCHW: Tensor) -> Tensor:
    """The image with its channels side by side in memory: convolutions run faster and 1x1 convolutions need no copies.

    A clone, because `contiguous` leaves an image of one channel as it is, and then every further map too.
    """
    return image_BCHW.clone(memory_format=torch.channels_last)


def blocks(channels: int, widths: Sequence[int], *, last_stride: int = 2) -> nn.Sequential:
    """A run of blocks of these widths with stride 2, the last with `last_stride`.

    >>> blocks(3, (24, 24, 24, 24), last_stride=1)(torch.zeros(1, 3, 75, 75)).shape  # CNN_h of section 5.3
    torch.Size([1, 24, 10, 10])
    """
    strides = [2] * (len(widths) - 1) + [last_stride]
    sizes = zip((channels, *widths), widths, strides, strict=False)
    return nn.Sequential(*(Block(size, width, stride=stride) for size, width, stride in sizes))


def mlp(*sizes: int) -> nn.Sequential:
    """Linear layers of these sizes with ReLU between them."""
    layers: list[nn.Module] = []
    for size, width in pairwise(sizes):
        layers += [nn.Linear(size, width), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers[:-1])


class Broadcasting(nn.Module):
    """F -> [F, BCN(F)] -> 1x1 convolution and ReLU down to the width that the next layer takes (section 5.2).

    >>> Broadcasting(24, BroadcastConv(24, (64, 64, 128)))(torch.rand(2, 24, 32, 32)).shape
    torch.Size([2, 24, 32, 32])
    """

    def __init__(
        self, channels: int, broadcast: BroadcastConv, *, reduce_to: int | None = None, residual: bool = False
    ) -> None:
        super().__init__()
        self.broadcast = broadcast
        sources = (channels, broadcast.out_channels, len(broadcast.planes))
        self.reduce = ConcatConv1x1(sources, channels if reduce_to is None else reduce_to)
        self.gamma = nn.Parameter(torch.zeros(channels)) if residual else None
        """scales what a residual block adds; a network that initialises all convolutions anew leaves it at zero"""

    def sources(self, map_BCHW: Tensor) -> dict[str, Tensor]:
        """What the 1x1 convolution sees of each part of [F, BCN(F)], in the order of its weights: rows."""
        planes = rows(self.broadcast.coordinates(map_BCHW))
        sources = {"objects": rows(map_BCHW), "broadcast": self.broadcast.pooled(map_BCHW)[0], "planes": planes}
        return {name: source.flatten(0, -2) for name, source in sources.items()}

    @whole_under_fx
    def forward(self, map_BCHW: Tensor) -> Tensor:
        vector_BK, _ = self.broadcast.pooled(map_BCHW)
        reduced_BCHW: Tensor = self.reduce(map_BCHW, vector_BK, self.broadcast.coordinates(map_BCHW))
        if self.gamma is None:
            return safe_relu(reduced_BCHW)
        return torch.addcmul(map_BCHW, self.gamma[:, None, None], reduced_BCHW)


class BroadcastBlock(Broadcasting):
    """A BCN for any place of any network: (B, C, H, W) in and out, and at first what comes out is what went in.

    Residual, it is F + gamma * (W [F, BCN(F)] + b), with a gamma of zeros. Reducing, as in section 5.2, it is
    relu(W [F, BCN(F)] + b), with W = (1, 0, 0): that changes nothing where a ReLU came before.

    >>> block, features = BroadcastBlock(64, (128, 128, 256)), torch.rand(2, 64, 14, 14)
    >>> torch.equal(block(features), features)
    True

    In an `nn.Sequential`, in the `forward` of your own, or as timm's `attn_layer`:
    `timm.create_model("resnet18", block_args={"attn_layer": bcn.BroadcastBlock})`.

    Args:
        channels: of the map.
        sizes, planes, origin, pool, final_relu: of the `BroadcastConv`; without its final ReLU no channel can die.
        residual: or reducing.
        device, dtype: of the parameters, as everywhere in torch.
    """

    def __init__(
        self,
        channels: int,
        sizes: Sequence[int] = (128, 128, 256),
        *,
        residual: bool = True,
        planes: str = "xyr",
        origin: str = "centre",
        pool: str = "max",
        final_relu: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        broadcast = BroadcastConv(channels, sizes, planes=planes, origin=origin, pool=pool, final_relu=final_relu)
        super().__init__(channels, broadcast, residual=residual)
        if not residual:
            _start_as_identity(self.reduce)
        self.to(device=device, dtype=dtype)


@torch.no_grad()
def _start_as_identity(conv: ConcatConv1x1) -> None:
    """Let a convolution over a concatenation pass its first source on, and nothing else."""
    for parameter in conv.parameters():
        nn.init.zeros_(parameter)
    nn.init.eye_(conv.part(0))


class Skipping(nn.Module):
    """The baseline without pooling: F -> [F, [F, C] * k] -> 1x1 convolution and ReLU."""

    def __init__(self, channels: int, skip: SkipConv) -> None:
        super().__init__()
        self.skip = skip
        self.reduce = ConcatConv1x1((channels, skip.out_channels), channels)

    def forward(self, map_BCHW: Tensor) -> Tensor:
        return safe_relu(self.reduce(map_BCHW, self.skip(map_BCHW)))


class CoordinateChannels(nn.Module):
    """The baseline without broadcasting: F -> [F, C], coordinate channel embedding alone."""

    def __init__(self, planes: str = "xyr", origin: str = "centre") -> None:
        super().__init__()
        check_planes(planes, origin)
        self.planes, self.origin = planes, origin

    def forward(self, map_BCHW: Tensor) -> Tensor:
        planes = planes_like(map_BCHW, self.planes, self.origin)
        return torch.cat([map_BCHW, planes.expand(map_BCHW.shape[0], -1, -1, -1)], dim=1)

    def extra_repr(self) -> str:
        return f"planes={self.planes!r}, origin={self.origin!r}"


class Classifier(nn.Module):
    """Blocks, what table 1 puts between them, further blocks, global average pool, head."""

    def __init__(self, before: nn.Module, middle: nn.Module, after: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.before, self.middle, self.after, self.head = before, middle, after, head

    @property
    def broadcast(self) -> BroadcastConv | None:
        return self.middle.broadcast if isinstance(self.middle, Broadcasting) else None

    def features(self, image_BCHW: Tensor) -> Tensor:
        """The map that the BCN sees, where there is one."""
        features: Tensor = self.before(channels_last(image_BCHW))
        return features

    def forward(self, image_BCHW: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        map_BCHW: Tensor = self.after(self.middle(self.features(image_BCHW)))
        answer: Tensor | tuple[Tensor, Tensor] = self.head(map_BCHW.mean(dim=(2, 3)))
        return answer
