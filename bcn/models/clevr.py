"""CLEVR from pixels (section 5.3, table 4): the models of Sort-of-CLEVR with questions in words, and their baselines.

All models take images (B, 3, H, W) and token indices (B, L) or (B, Q, L), padded with 0, and give logits (B, A) or
(B, Q, A); `vocab_size` counts the indices, that of padding included. 128x128 pixels become 8x8 objects, 16x16
in CNN_h; the row multirn-h-224 is multirn-h on images of 224x224, 28x28 objects. Apart from cnn-lstm, any image size
will do.

The paper cites the baselines from others, who had larger networks and pretrained features. Here they have the same
CNN and the same question encoder, so that a row differs from the next in one thing. multirn-rounds is
ours, and has a deeper CNN.
"""

from collections.abc import Callable, Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bcn.layers.baselines.attention import StackedAttention
from bcn.layers.baselines.conv_block import Block
from bcn.layers.baselines.film import Film
from bcn.layers.broadcast import BroadcastConv
from bcn.layers.pointwise import ConcatConv1x1
from bcn.layers.relation import MultiRelation, PairRelation
from bcn.layers.rounds import RoundsRelation
from bcn.models.blocks import blocks, mlp
from bcn.models.initialise import OBJECT_STD, PLANE_STD, QUESTION_STD, balance_sources, kaiming_blocks
from bcn.models.question_encoder import QuestionEncoder, lengths
from bcn.models.registry import register
from bcn.models.relation_model import Flattened, QuestionAnswerer, RelationModel

IMAGE = (3, 128, 128)
NUM_ANSWERS = 28
VOCAB_SIZE = 90
"""about as many as CLEVR's questions have, padding included; a data set that is trained on says how many it has"""


class QuestionOnly(nn.Module):
    """The baseline that does not see the image."""

    def __init__(self, f: nn.Module) -> None:
        super().__init__()
        self.f = f

    def forward(self, image_BCHW: Tensor, question: Tensor) -> Tensor:
        logits: Tensor = self.f(question)
        return logits


class QuestionType(nn.Module):
    """The baseline that answers by the type of the question: by the most frequent answer of questions that begin and
    end alike.

    Each of the first `first` and the last `last` words adds its own logits, whatever the other words are.
    """

    broadcast = None

    def __init__(self, vocab_size: int, num_answers: int, *, first: int = 4, last: int = 2) -> None:
        super().__init__()
        self.first, self.last = first, last
        self.votes = nn.ModuleList(nn.Embedding(vocab_size, num_answers) for _ in range(first + last))

    def forward(self, image_BCHW: Tensor, question: Tensor) -> Tensor:
        token_UL = question.flatten(0, -2)
        index = lengths(token_UL)[:, None] - torch.arange(1, self.last + 1, device=question.device)
        ending = token_UL.gather(1, index.clamp(min=0))
        beginning = F.pad(token_UL, (0, self.first))[:, : self.first]  # padding counts, however much of it was given
        words = [*beginning.unbind(1), *ending.unbind(1)]
        logits_UA = torch.stack([vote(word) for vote, word in zip(self.votes, words, strict=True)]).sum(dim=0)
        return logits_UA.view(*question.shape[:-1], logits_UA.shape[1])


def _cnn(*, last_stride: int = 2) -> nn.Sequential:
    """Four blocks of 24, as for Sort-of-CLEVR."""
    return kaiming_blocks(blocks(3, (24, 24, 24, 24), last_stride=last_stride))


def rounds_model(
    cnn: Callable[[], nn.Sequential],
    channels: int,
    width: int,
    rounds: int,
    planes: str,
    origin: str,
    vocab_size: int,
    num_answers: int,
) -> QuestionAnswerer:
    """Broadcast after asking, on the map of `channels` that a CNN makes."""
    question = QuestionEncoder(vocab_size)
    relation = RoundsRelation(channels, question.out_channels, width, rounds=rounds, planes=planes, origin=origin)
    seen = OBJECT_STD, PLANE_STD, QUESTION_STD
    balance_sources(relation.first.parts(), seen)
    for hears in relation.hears:
        balance_sources(cast(ConcatConv1x1, hears).parts(), (None, None, *seen))
    return QuestionAnswerer(question, RelationModel(cnn(), relation, mlp(width, 256, 256, num_answers)))


def _multirn(
    last_stride: int,
    sizes: Sequence[int],
    planes: str,
    origin: str,
    vocab_size: int,
    num_answers: int,
    final_relu: bool,
) -> QuestionAnswerer:
    """Equation 4."""
    question = QuestionEncoder(vocab_size)
    broadcast = BroadcastConv(24, sizes, planes=planes, origin=origin, final_relu=final_relu) if sizes else None
    relation = MultiRelation(24, question.out_channels, broadcast=broadcast, planes=planes, origin=origin)
    balance_sources(relation.g.first.parts(), (OBJECT_STD, None, PLANE_STD, QUESTION_STD))
    return QuestionAnswerer(
        question, RelationModel(_cnn(last_stride=last_stride), relation, mlp(256, 256, 256, num_answers))
    )


@register("clevr/q-type", image=IMAGE)
def q_type(vocab_size: int = VOCAB_SIZE, num_answers: int = NUM_ANSWERS) -> QuestionType:
    return QuestionType(vocab_size, num_answers)


@register("clevr/lstm", image=IMAGE)
def lstm(vocab_size: int = VOCAB_SIZE, num_answers: int = NUM_ANSWERS) -> QuestionAnswerer:
    question = QuestionEncoder(vocab_size)
    return QuestionAnswerer(question, QuestionOnly(mlp(question.out_channels, 256, 256, num_answers)))


@register("clevr/cnn-lstm", image=IMAGE)
def cnn_lstm(vocab_size: int = VOCAB_SIZE, num_answers: int = NUM_ANSWERS) -> QuestionAnswerer:
    """All objects in one long vector, then the question."""
    question = QuestionEncoder(vocab_size)
    flattened = Flattened(24, question.out_channels, size=(8, 8), planes="", origin="centre")
    f = mlp(flattened.out_channels, 256, 256, num_answers)
    objects = flattened.out_channels - question.out_channels
    balance_sources(
        cast(Tensor, f[0].weight).split((objects, question.out_channels), dim=1), (OBJECT_STD, QUESTION_STD)
    )
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
    balance_sources(relation.g.first.parts(), (OBJECT_STD, PLANE_STD, OBJECT_STD, PLANE_STD, QUESTION_STD))
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
    final_relu: bool = False,
) -> QuestionAnswerer:
    return _multirn(2, sizes, planes, origin, vocab_size, num_answers, final_relu)


@register("clevr/multirn-h-224", image=(3, 224, 224))
@register("clevr/multirn-h", image=IMAGE)
def multirn_h(
    sizes: tuple[int, ...] = (128, 128, 256),
    planes: str = "xyr",
    origin: str = "centre",
    vocab_size: int = VOCAB_SIZE,
    num_answers: int = NUM_ANSWERS,
    final_relu: bool = False,
) -> QuestionAnswerer:
    return _multirn(1, sizes, planes, origin, vocab_size, num_answers, final_relu)


@register("clevr/multirn-rounds", image=IMAGE)
def multirn_rounds(
    width: int = 128,
    rounds: int = 3,
    planes: str = "xyr",
    origin: str = "centre",
    vocab_size: int = VOCAB_SIZE,
    num_answers: int = NUM_ANSWERS,
) -> QuestionAnswerer:
    """Ours: broadcast after asking, 128 objects; as many rounds as CLEVR's longest chains have relations.

    A large object has 40 of 128 pixels, and an object of the map sees 31 in four blocks and 63 in these six. Objects
    stand side by side rather than above each other: 1 % share a cell of 8 rows of 16, 7 % one of 8 of 8.
    """
    cnn = kaiming_blocks(
        nn.Sequential(
            Block(3, 32, stride=2),
            Block(32, 64, stride=2),
            Block(64, 64, stride=2),
            Block(64, 64),
            Block(64, 64, stride=(2, 1)),
            Block(64, 64),
        )
    )
    return rounds_model(lambda: cnn, 64, width, rounds, planes, origin, vocab_size, num_answers)
