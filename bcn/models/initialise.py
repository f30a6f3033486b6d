"""Variance-balanced initialisation of the CLEVR models. Not in the paper.

With PyTorch's initialisation, objects change g's first layer by 0.12 (standard deviation), a word of a question by
0.025 and coordinates by 0.024: what a question means for an object, or for a place, is then learned very late.
"""

from collections.abc import Sequence
from typing import cast

from torch import Tensor, nn

from bcn.layers.baselines.conv_block import Block

OBJECT_STD, PLANE_STD, QUESTION_STD = 1.0, 0.55, 0.06
"""of objects, which leave a BatchNorm, of coordinates, and of questions that differ in a word, before training"""


def balance_sources(parts: Sequence[Tensor], stds: Sequence[float | None]) -> None:
    """Initialise a layer over a concatenation so that each source gives its outputs a standard deviation of 1.

    Args:
        parts: the weights of each source, (K, S).
        stds: the standard deviation of each source's numbers; None leaves its weights as they are.
    """
    for part, std in zip(parts, stds, strict=True):
        if std is not None and part.shape[1]:
            nn.init.normal_(part, std=1 / (std * part.shape[1] ** 0.5))


def kaiming_blocks(blocks: nn.Sequential) -> nn.Sequential:
    """Initialise 3x3 blocks as He et al. (2015), without biases.

    The weights are 2.4 times as large as PyTorch's. A BatchNorm follows, so the output is the same, but a step of Adam
    turns them less.
    """
    for block in blocks:
        conv = cast(Block, block).conv
        nn.init.kaiming_normal_(conv.weight)
        nn.init.zeros_(cast(Tensor, conv.bias))
    return blocks
