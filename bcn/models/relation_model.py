"""The model that answers questions: f(relation(CNN(image), question)), the question as numbers or in words.

B images, Q questions of D numbers about each, L tokens in a question in words, A answers.
"""

import torch
from torch import Tensor, nn

from bcn.errors import BcnError
from bcn.layers.broadcast import BroadcastConv
from bcn.layers.relation import MultiRelation, check_questions
from bcn.models.blocks import CoordinateChannels, channels_last
from bcn.models.question_encoder import PackedQuestions, QuestionEncoder


class Flattened(nn.Module):
    """The baseline without relations: all objects in one long vector, then the question."""

    def __init__(self, channels: int, question_dim: int, *, size: tuple[int, int], planes: str, origin: str) -> None:
        super().__init__()
        self.coordinates = CoordinateChannels(planes, origin)
        self.question_dim, self.size = question_dim, size
        self.out_channels = (channels + len(planes)) * size[0] * size[1] + question_dim

    def forward(self, map_BCHW: Tensor, question: Tensor) -> Tensor:
        if (size := tuple(map_BCHW.shape[-2:])) != self.size:
            raise BcnError(f"the image gives a map of {size}: an mlp accepts {self.size} alone, scale the image to fit")
        objects: Tensor = self.coordinates(map_BCHW).flatten(1)
        if question.dim() == 3:
            objects = objects[:, None].expand(-1, question.shape[1], -1)
        return torch.cat([objects, question], dim=-1)


class RelationModel(nn.Module):
    """f(relation(CNN(image), question)), the question as numbers (B, D) or (B, Q, D); logits (B, A) or (B, Q, A).

    Args:
        encoder: the CNN, whose map of objects `relation` sees.
        relation: (map, question) -> (B, G) or (B, Q, G), with `question_dim`, such as `MultiRelation`.
        f: from there to the logits.
    """

    def __init__(self, encoder: nn.Module, relation: nn.Module, f: nn.Module) -> None:
        super().__init__()
        self.encoder, self.relation, self.f = encoder, relation, f

    @property
    def broadcast(self) -> BroadcastConv | None:
        return self.relation.broadcast if isinstance(self.relation, MultiRelation) else None

    @property
    def question_dim(self) -> int:
        question_dim = self.relation.question_dim
        assert isinstance(question_dim, int)
        return question_dim

    def features(self, image_BCHW: Tensor) -> Tensor:
        """The map of objects, which the BCN sees where there is one."""
        features: Tensor = self.encoder(channels_last(image_BCHW))
        return features

    def forward(self, image_BCHW: Tensor, question: Tensor) -> Tensor:
        check_questions(question, image_BCHW.shape[0], self.question_dim)
        return self.from_features(self.features(image_BCHW), question)

    def from_features(self, map_BCHW: Tensor, question: Tensor) -> Tensor:
        """The logits, from the map of objects on."""
        logits: Tensor = self.f(self.relation(map_BCHW, question))
        return logits


class QuestionAnswerer(nn.Module):
    """A model for questions in words: token indices (B, L) or (B, Q, L), padded with 0, to logits (B, A) or (B, Q, A).

    Args:
        question_encoder: reads the question.
        answer: (image, question vector) -> logits, such as `RelationModel`.
    """

    def __init__(self, question_encoder: QuestionEncoder, answer: nn.Module) -> None:
        super().__init__()
        self.question_encoder, self.answer = question_encoder, answer

    @property
    def broadcast(self) -> BroadcastConv | None:
        return self.answer.broadcast if isinstance(self.answer, RelationModel) else None

    def features(self, image_BCHW: Tensor) -> Tensor:
        """The map of objects, which the BCN sees where there is one."""
        assert isinstance(self.answer, RelationModel), "this model does not look at the image"
        return self.answer.features(image_BCHW)

    def from_features(self, map_BCHW: Tensor, question: Tensor | PackedQuestions) -> Tensor:
        """The logits, from the map of objects on."""
        assert isinstance(self.answer, RelationModel), "this model does not look at the image"
        return self.answer.from_features(map_BCHW, self.question_encoder(question))

    def forward(self, image_BCHW: Tensor, question: Tensor | PackedQuestions) -> Tensor:
        logits: Tensor = self.answer(image_BCHW, self.question_encoder(question))
        return logits
