"""Ours: drawn shapes and letters, and your own images: broadcast after asking, on objects that a deeper CNN sees.

Images (B, 3, H, W) and token indices (B, L) or (B, Q, L), as for CLEVR; 128x128 pixels become 8x8 objects. Of CLEVR's
CNN, four blocks of 24, an object sees 31 pixels: too few for a letter, which may have 44. Here it sees 79.
"""

from torch import nn

from bcn.layers.baselines.conv_block import Block
from bcn.models.clevr import IMAGE, NUM_ANSWERS, VOCAB_SIZE, rounds_model
from bcn.models.initialise import kaiming_blocks
from bcn.models.registry import register
from bcn.models.relation_model import QuestionAnswerer

CHANNELS = 64
"""of an object"""


def _cnn() -> nn.Sequential:
    return kaiming_blocks(
        nn.Sequential(
            Block(3, 32, stride=2),
            Block(32, CHANNELS, stride=2),
            Block(CHANNELS, CHANNELS, stride=2),
            Block(CHANNELS, CHANNELS),
            Block(CHANNELS, CHANNELS, stride=2),
            Block(CHANNELS, CHANNELS),
        )
    )


@register("drawn/multirn-rounds", image=IMAGE)
def multirn_rounds(
    width: int = 128,
    rounds: int = 2,
    planes: str = "xyr",
    origin: str = "centre",
    vocab_size: int = VOCAB_SIZE,
    num_answers: int = NUM_ANSWERS,
) -> QuestionAnswerer:
    """Broadcast after asking, 64 objects of 64 channels."""
    cnn = _cnn()  # initialised first: what a seed gives depends on the order
    return rounds_model(lambda: cnn, CHANNELS, width, rounds, planes, origin, vocab_size, num_answers)
