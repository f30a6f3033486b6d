"""The networks of tables 1 and 2 with other blocks in the place of the BCN, each with as many parameters as the BCN.

Blocks keep the shape of the map. Their hidden widths, unusually large for most of them, make the count; a test holds
it to a hundredth. The BCN ends in a linear convolution, so that no channel dies.
"""

from collections.abc import Callable

from torch import nn

from bcn.layers.baselines.cbam import Cbam
from bcn.layers.baselines.coord_conv import CoordConv
from bcn.layers.baselines.coordinate_attention import CoordinateAttention
from bcn.layers.baselines.global_context import GlobalContext
from bcn.layers.baselines.self_attention import SelfAttention
from bcn.layers.baselines.squeeze_excite import SqueezeExcite
from bcn.layers.broadcast import BroadcastConv
from bcn.models import scaled_mnist, stl10
from bcn.models.blocks import Broadcasting, Classifier, blocks
from bcn.models.registry import register
from bcn.models.scaled_mnist import ClassAndCentre

BLOCKS: dict[str, tuple[Callable[[int, int], nn.Module], int, int]] = {
    "se": (SqueezeExcite, 367, 612),
    "global-context": (GlobalContext, 352, 602),
    "cbam": (Cbam, 373, 616),
    "coord-conv": (CoordConv, 67, 118),
    "coordinate-attention": (CoordinateAttention, 243, 407),
    "self-attention": (SelfAttention, 168, 296),
}
"""each with its hidden width on Scaled-MNIST (24 channels) and on STL-10 (64)"""


def digits(middle: nn.Module, *, before: int = 2) -> Classifier:
    """Table 1's three blocks of 24, with something after the first `before` of them."""
    after = blocks(24, (24,) * (3 - before)) if before < 3 else nn.Identity()
    return Classifier(blocks(1, (24,) * before), middle, after, ClassAndCentre(24))


def photographs(middle: nn.Module) -> Classifier:
    """Table 2's four blocks of 64, with something after the third."""
    return Classifier(blocks(3, (64,) * 3), middle, blocks(64, (64,)), nn.Linear(64, 10))


def broadcasting(channels: int, sizes: tuple[int, ...]) -> Broadcasting:
    return Broadcasting(channels, BroadcastConv(channels, sizes, final_relu=False))


def _register(name: str) -> None:
    block, of_digits, of_photographs = BLOCKS[name]

    @register(f"scaled-mnist-blocks/{name}", image=scaled_mnist.IMAGE)
    def build_digits() -> Classifier:
        return digits(block(24, of_digits))

    @register(f"stl10-blocks/{name}", image=stl10.IMAGE)
    def build_photographs() -> Classifier:
        return photographs(block(64, of_photographs))


for _name in BLOCKS:
    _register(_name)


@register("scaled-mnist-blocks/bcn", image=scaled_mnist.IMAGE)
def bcn() -> Classifier:
    return digits(broadcasting(24, (64, 64, 128)))


@register("scaled-mnist-blocks/bcn-after-1", image=scaled_mnist.IMAGE)
def bcn_after_1() -> Classifier:
    return digits(broadcasting(24, (64, 64, 128)), before=1)


@register("scaled-mnist-blocks/bcn-after-3", image=scaled_mnist.IMAGE)
def bcn_after_3() -> Classifier:
    return digits(broadcasting(24, (64, 64, 128)), before=3)


@register("stl10-blocks/bcn", image=stl10.IMAGE)
def bcn_photographs() -> Classifier:
    return photographs(broadcasting(64, (128, 128, 256)))
