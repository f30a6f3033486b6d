"""CLEVR from pixels (section 5.3, table 4): the models of Sort-of-CLEVR, asked in sentences, and their rivals.

All models take images (B, 3, H, W) and token indices (B, L) or (B, Q, L), padded with 0, and give logits (B, A) or
(B, Q, A); `vocab_size` counts the indices, that of padding included. 128x128 pixels become 8x8 objects, 16x16
in CNN_h; the row multirn-h-224 is multirn-h on images of 224x224, 28x28 objects. Apart from cnn-lstm, any image size
will do.

The rivals are cited in the paper from others, who had larger networks and pretrained features. Here they see the same
pixels through the same CNN and read the question with the same LSTM, so that a row differs from the next in one thing.
"""

from collections.abc import Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bcn.layers.baselines.attention import StackedAttention
from bcn.layers.baselines.conv_block import Block
from bcn.layers.baselines.film import Film
from bcn.layers.broadcast import BroadcastConv
from bcn.layers.relation import MultiRelation, PairRelation
from bcn.models.blocks import blocks, mlp
from bcn.models.question_encoder import QuestionEncoder, lengths
from bcn.models.registry import register
from bcn.models.relation_model import Flattened, QuestionAnswerer, RelationModel

IMAGE = (3, 128, 128)

NUM_ANSWERS = 28
OBJECT_SPREAD, PLANE_SPREAD, QUESTION_SPREAD = 1.0, 0.55, 0.06
"""of objects, which leave a BatchNorm, of coordinates, and of questions that differ in a word, at the start"""
VOCAB_SIZE = 90
"""about as many as CLEVR's questions have, padding included; a data set that is trained on says how many it has"""


class Blind(nn.Module):
    """Answers without the image."""

    def __init__(self, f: nn.Module) -> None:
        super().__init__()
        self.f = f

    def forward(self, image_BCHW: Tensor, question: Tensor) -> Tensor:
        logits: Tensor = self.f(question)
        return logits


class QuestionType(nn.Module):
    """Answers by the type of the question alone: by what most questions that begin and end alike have for an answer.

    A word in one of the first `first` and the last `last` places votes for answers, whatever the others are.
    """

    broadcast = None

    def __init__(self, vocab_size: int, num_answers: int, *, first: int = 4, last: int = 2) -> None:
        super().__init__()
        self.first, self.last = first, last
        self.votes = nn.ModuleList(nn.Embedding(vocab_size, num_answers) for _ in range(first + last))

    def forward(self, image_BCHW: Tensor, question: Tensor) -> Tensor:
        token_UL = question.flatten(0, -2)
        place = lengths(token_UL)[:, None] - torch.arange(1, self.last + 1, device=question.device)
        ending = token_UL.gather(1, place.clamp(min=0))
        beginning = F.pad(token_UL, (0, self.first))[:, : self.first]  # padding counts, however much of it was given
        heard = [*beginning.unbind(1), *ending.unbind(1)]
        logits_UA = torch.stack([vote(word) for vote, word in zip(self.votes, heard, strict=True)]).sum(dim=0)
        return logits_UA.view(*question.shape[:-1], logits_UA.shape[1])


def level(parts: Sequence[Tensor], spreads: Sequence[float | None]) -> None:
    """Start a layer over a concatenation so that its sources are equally heard.

    Each source has its part of the weights, its numbers vary by `spread` at the start, and it moves the layer by 1;
    None leaves it as it is. With PyTorch's own start, objects move g's first layer by 0.12, a word of a question by
    0.025 and coordinates by 0.024: what a question means for an object, or for a place, is then learned very late.
    """
    for part, spread in zip(parts, spreads, strict=True):
        if spread is not None and part.shape[1]:
            nn.init.normal_(part, std=1 / (spread * part.shape[1] ** 0.5))


def _cnn(*, last_stride: int = 2) -> nn.Sequential:
    """Four blocks of 24, as for Sort-of-CLEVR.

    He's start, without biases: the weights are 2.4 times as large as PyTorch's. A BatchNorm follows, so what they
    compute is the same, but a step of Adam turns them less.
    """
    cnn = blocks(3, (24, 24, 24, 24), last_stride=last_stride)
    for block in cnn:
        conv = cast(Block, block).conv
        nn.init.kaiming_normal_(conv.weight)
        nn.init.zeros_(cast(Tensor, conv.bias))
    return cnn


def _multirn(
    last_stride: int, sizes: Sequence[int], planes: str, origin: str, vocab_size: int, num_answers: int
) -> QuestionAnswerer:
    """Equation 4."""
    question = QuestionEncoder(vocab_size)
    broadcast = BroadcastConv(24, sizes, planes=planes, origin=origin) if sizes else None
    relation = MultiRelation(24, question.out_channels, broadcast=broadcast, planes=planes, origin=origin)
    level(relation.g.first.parts(), (OBJECT_SPREAD, None, PLANE_SPREAD, QUESTION_SPREAD))
    return QuestionAnswerer(
        question, RelationModel(_cnn(last_stride=last_stride), relation, mlp(256, 256, 256, num_answers))
    )


@register("clevr/q-type", image=IMAGE)
def q_type(vocab_size: int = VOCAB_SIZE, num_answers: int = NUM_ANSWERS) -> QuestionType:
    return QuestionType(vocab_size, num_answers)


@register("clevr/lstm", image=IMAGE)
def lstm(vocab_size: int = VOCAB_SIZE, num_answers: int = NUM_ANSWERS) -> QuestionAnswerer:
    question = QuestionEncoder(vocab_size)
    return QuestionAnswerer(question, Blind(mlp(question.out_channels, 256, 256, num_answers)))


@register("clevr/cnn-lstm", image=IMAGE)
def cnn_lstm(vocab_size: int = VOCAB_SIZE, num_answers: int = NUM_ANSWERS) -> QuestionAnswerer:
    """All objects in one long vector, then the question."""
    question = QuestionEncoder(vocab_size)
    flattened = Flattened(24, question.out_channels, size=(8, 8), planes="", origin="centre")
    f = mlp(flattened.out_channels, 256, 256, num_answers)
    objects = flattened.out_channels - question.out_channels
    level(cast(Tensor, f[0].weight).split((objects, question.out_channels), dim=1), (OBJECT_SPREAD, QUESTION_SPREAD))
    return QuestionAnswerer(question, RelationModel(_cnn(), flattened, f))


@register("clevr/cnn-lstm-sa", image=IMAGE)
def cnn_lstm_sa(vocab_size: int = VOCAB_SIZE, num_answers: int = NUM_ANSWERS) -> QuestionAnswerer:
    question = QuestionEncoder(vocab_size)
    attention = StackedAttention(24, question.out_channels)
    return QuestionAnswerer(
        question, RelationModel(_cnn(), attention, mlp(question.out_channels, 256, 256, num_answers))
    )


@register("clevr/rn", image=IMAGE)
def rn(
    planes: str = "xyr", origin: str = "centre", vocab_size: int = VOCAB_SIZE, num_answers: int = NUM_ANSWERS
) -> QuestionAnswerer:
    """Equation 2 with everything else as in multiRN."""
    question = QuestionEncoder(vocab_size)
    relation = PairRelation(24, question.out_channels, planes=planes, origin=origin)
    level(relation.g.first.parts(), (OBJECT_SPREAD, PLANE_SPREAD, OBJECT_SPREAD, PLANE_SPREAD, QUESTION_SPREAD))
    return QuestionAnswerer(question, RelationModel(_cnn(), relation, mlp(256, 256, 256, num_answers)))


@register("clevr/film-pixels", image=IMAGE)
def film_pixels(vocab_size: int = VOCAB_SIZE, num_answers: int = NUM_ANSWERS) -> QuestionAnswerer:
    """Four FiLM blocks of 128 on a CNN of 128, as from raw pixels there; their GRU of 4,096 units is our LSTM."""
    question = QuestionEncoder(vocab_size)
    film = Film(128, question.out_channels)
    return QuestionAnswerer(
        question, RelationModel(blocks(3, (128,) * 4), film, mlp(film.out_channels, 1024, num_answers))
    )


@register("clevr/multirn", image=IMAGE)
def multirn(
    sizes: tuple[int, ...] = (128, 128, 256),
    planes: str = "xyr",
    origin: str = "centre",
    vocab_size: int = VOCAB_SIZE,
    num_answers: int = NUM_ANSWERS,
) -> QuestionAnswerer:
    return _multirn(2, sizes, planes, origin, vocab_size, num_answers)


@register("clevr/multirn-h-224", image=(3, 224, 224))
@register("clevr/multirn-h", image=IMAGE)
def multirn_h(
    sizes: tuple[int, ...] = (128, 128, 256),
    planes: str = "xyr",
    origin: str = "centre",
    vocab_size: int = VOCAB_SIZE,
    num_answers: int = NUM_ANSWERS,
) -> QuestionAnswerer:
    return _multirn(1, sizes, planes, origin, vocab_size, num_answers)
