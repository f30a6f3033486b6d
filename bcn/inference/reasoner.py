"""Ask a trained model about an image: `bcn.load(name)` gives a Reasoner, `reasoner.ask(image, questions)` its answers.

Q questions of D numbers, A answers, C x H x W pixels.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from bcn.data.dataset import Preprocessing
from bcn.data.images import ImageInput, find_doubt, fit, read_image, resize
from bcn.data.vqa.synonyms import say_in_known_words
from bcn.data.vqa.vocabulary import UNKNOWN, Vocabulary, tokenize
from bcn.errors import BcnError, DoubtWarning
from bcn.inference.answer import Answer
from bcn.inference.broadcast import Broadcast, Output, forward_with_broadcast, pool
from bcn.inference.coding import CODINGS, find_coding
from bcn.inference.shipped import locate_weights
from bcn.layers.rounds import find_rounds
from bcn.models.centre_net import CentreNet
from bcn.models.object_model import ObjectModel
from bcn.models.registry import image_shape
from bcn.models.unet import UNet
from bcn.training.forward import device_of
from bcn.training.weights import load_model


class EncodedQuestions(NamedTuple):
    """Questions as a model takes them."""

    numbers_QD: np.ndarray
    """question vectors, or token indices padded with 0"""
    texts: list[str]
    """each question as the model understood it"""
    unknown: tuple[tuple[str, ...], ...] = ()
    """the words of each question that the model does not know; empty for question vectors"""


class Reasoner:
    """A trained model with what using it takes: the preprocessing of images and the names of its answers."""

    def __init__(self, name: str, model: nn.Module, description: dict[str, Any]) -> None:
        if isinstance(model, ObjectModel):
            raise BcnError(f"{name} takes the objects of a scene and not its image: give weights of a model of images")
        for kind, given in ((UNet, "masks"), (CentreNet, "boxes")):
            if isinstance(model, kind):
                raise BcnError(f"{name} gives {given} and no answers: use `bcn.training.weights.load_model`")
        self.name, self.model, self.description = name, model.eval(), description
        self.family = str(description["model"]).split("/")[0]
        self.answers: tuple[str, ...] = tuple(description["answers"])
        self.coding = find_coding(model, description)
        self.preprocessing = Preprocessing(**{key: tuple(part) for key, part in description["preprocessing"].items()})

    def __repr__(self) -> str:
        return f"Reasoner({self.name!r}, {self.description['model']}, trained on {self.description['data']})"

    def to(self, device: torch.device | str) -> "Reasoner":
        """Move the model to a device, such as "cuda"; images and questions follow it, answers come back."""
        self.model.to(device)
        return self

    @property
    def takes_questions(self) -> bool:
        """Whether it answers questions; otherwise it classifies images, and may localise."""
        return bool(self.description["kinds"]) or self.takes_words

    @property
    def takes_words(self) -> bool:
        """Whether a question is a sequence of words of its vocabulary, read by a question encoder."""
        return "words" in self.description

    @property
    def question_dtype(self) -> torch.dtype:
        """Of encoded questions: token indices are integers, question vectors are not."""
        return torch.int64 if self.takes_words else torch.float32

    @property
    def has_bcn(self) -> bool:
        """Whether the model has a BCN, which broadcasts before a question is known."""
        return getattr(self.model, "broadcast", None) is not None

    @overload
    def ask(self, image: ImageInput, questions: str | Sequence[str]) -> list[Answer]: ...
    @overload
    def ask(self, image: list[ImageInput], questions: str | Sequence[str]) -> list[list[Answer]]: ...
    def ask(
        self, image: ImageInput | list[ImageInput], questions: str | Sequence[str]
    ) -> list[Answer] | list[list[Answer]]:
        """Answer each question; all of them share one pass of the CNN and the BCN over the image.

        Args:
            image: a path, a PIL image, or an array of uint8 (H, W) or (H, W, 3); or a list of them, each of which is
                asked all questions, and has a list of answers of its own.
            questions: one question in English, or several.
        """
        if isinstance(image, list):
            return [self.ask(each, questions) for each in image]
        encoded = self.encode(questions)
        return self.answer_with_broadcast(_look_at(image), encoded)[0] if encoded.texts else []

    def find(self, image: ImageInput) -> Answer:
        """Classify an image and, where the model was trained to localise, say where the object is."""
        (answer,), _ = self.answer_with_broadcast(_look_at(image))
        return answer

    def encode(self, questions: str | Sequence[str]) -> EncodedQuestions:
        """Questions in English as the numbers that the model takes."""
        questions = [questions] if isinstance(questions, str) else questions
        if not isinstance(questions, Sequence) or not all(isinstance(question, str) for question in questions):
            raise BcnError(f"{questions!r} was asked: accepted are a sentence or a list of them")
        if not self.takes_questions:
            raise BcnError(f"{self.name} takes no questions: it classifies an image, with `find`")
        if self.coding is None and not self.takes_words:
            asked = " and ".join(coding.data for coding in CODINGS)
            raise BcnError(f"{self.name} takes no sentences: weights for the questions of {asked} do, or for words")
        if not questions:
            return EncodedQuestions(np.zeros((0, 0)), [])
        if self.coding is None:
            return encode_words(questions, self.description["words"])
        numbers_QD = np.stack([self.coding.from_sentence(question) for question in questions])
        return EncodedQuestions(numbers_QD, [self.coding.to_sentence(numbers) for numbers in numbers_QD])

    def answer_with_broadcast(
        self, image: ImageInput, questions: EncodedQuestions | None = None
    ) -> tuple[list[Answer], Broadcast | None]:
        """The answers, and what is broadcast, from one forward pass; None for a model that broadcasts nothing.

        Args:
            questions: what `encode` gives; without questions, the class of the image is the one answer.
        """
        if questions is None and self.takes_questions:
            raise BcnError(f"{self.name} answers questions: use `ask`, or weights for Scaled-MNIST to find digits")
        output = self.forward(image, None if questions is None else questions.numbers_QD)
        logits_QA, centre = output.logits, None
        if questions is not None:
            logits_QA = logits_QA[0]
        elif output.centre_B2 is not None and self.description["localise"]:
            x, y = output.centre_B2[0].tolist()
            centre = (x, y)
        answers = self.rank(logits_QA, questions, centre=centre)
        return answers, None if output.pooled is None else Broadcast.of(output.pooled)

    def rank(
        self, logits_QA: Tensor, questions: EncodedQuestions | None, *, centre: tuple[float, float] | None = None
    ) -> list[Answer]:
        """Logits as answers to these questions, or as the class of an image."""
        texts = [None] if questions is None else questions.texts
        unknown = questions.unknown if questions is not None and questions.unknown else ((),) * len(texts)
        return [
            Answer.ranked(self.answers, probability_A, question=text, centre=centre, unknown=words)
            for probability_A, text, words in zip(logits_QA.softmax(-1).tolist(), texts, unknown, strict=True)
        ]

    def probabilities(self, image: ImageInput, question_QD: np.ndarray) -> np.ndarray:
        """(Q, A) of questions that are already encoded."""
        return np.asarray(self.forward(image, question_QD).logits[0].softmax(-1).cpu())

    @torch.inference_mode()
    def broadcast(self, image: ImageInput, questions: str | Sequence[str] = ()) -> Broadcast:
        """What the BCN broadcasts about an image, and from where.

        Args:
            questions: for models that broadcast after asking; others broadcast the same whatever is asked.
        """
        if find_rounds(self.model) is not None:
            encoded = self.encode(questions)
            if not encoded.texts:
                raise BcnError(f"{self.name} broadcasts after asking: give a question beside the image")
            broadcast = self.answer_with_broadcast(image, encoded)[1]
            assert broadcast is not None
            return broadcast
        if not self.has_bcn:
            raise BcnError(f"{self.name} has no BCN and so no map: choose weights of a model with one")
        return Broadcast.of(pool(self.model, self.pixels(image)))

    def pixels(self, image: ImageInput) -> Tensor:
        """Read and preprocess an image: the (1, C, H, W) input of the model."""
        size = image_shape(str(self.description["model"]))
        pixels_CHW = resize(read_image(image), size) if self.takes_words else fit(read_image(image), size)
        return self.preprocessing(torch.from_numpy(pixels_CHW)[None].to(device_of(self.model)))

    @torch.inference_mode()
    def forward(self, image: ImageInput, question_QD: np.ndarray | None) -> Output:
        """One pass of the model: logits, centre, and what its BCN pooled, as tensors."""
        question_1QD = None if question_QD is None else self.to_tensor(question_QD)
        output = forward_with_broadcast(self.model, self.pixels(image), question_1QD)
        if not output.logits.isfinite().all():
            raise BcnError(f"{self.name} gives no finite numbers for this image: its weights are no use, load others")
        return output

    def to_tensor(self, question_QD: np.ndarray) -> Tensor:
        """Encoded questions about one image, as the model takes them: (1, Q, D)."""
        return torch.as_tensor(question_QD, dtype=self.question_dtype)[None].to(device_of(self.model))


def _look_at(image: ImageInput) -> Image.Image:
    """The image, with a warning where nothing can be seen in it."""
    picture = read_image(image)
    if doubt := find_doubt(picture):
        name = image if isinstance(image, str | Path) else "the image"
        warnings.warn(f"{name}: {doubt}, so answers about it mean nothing", DoubtWarning, stacklevel=3)
    return picture


def encode_words(questions: Sequence[str], words: Sequence[str]) -> EncodedQuestions:
    """Questions as token indices, padded with 0.

    A word that is not in the vocabulary is replaced by one of the same meaning that is; where there is none, ? stands
    for it in the texts, and it is named.

    >>> encode_words(["What colour is the dog?"], ["color", "is", "the", "what"])[1:]
    (['what color is the ?'], (('dog',),))
    """
    vocabulary = Vocabulary(tuple(words))
    known = set(vocabulary.words)
    said = [say_in_known_words(tokenize(question), known) for question in questions]
    encoded = [vocabulary.index(each) for each in said]
    for question, numbers in zip(questions, encoded, strict=True):
        if set(numbers) <= {UNKNOWN}:
            some = ", ".join(vocabulary.words[:12])
            raise BcnError(f"{question!r} has no word that was trained on: ask with words such as {some}")
    padded_QL = np.zeros((len(encoded), max(map(len, encoded))), np.int64)
    for row, numbers in zip(padded_QL, encoded, strict=True):
        row[: len(numbers)] = numbers
    texts = [" ".join(vocabulary.decode(numbers)) for numbers in encoded]
    return EncodedQuestions(padded_QL, texts, tuple(tuple(word for word in each if word not in known) for each in said))


def load(name: str | Path) -> Reasoner:
    """Load a trained model.

    Args:
        name: of shipped weights (`list_weights`), or the path of a run's directory or of a weights file.

    >>> from PIL import Image
    >>> load("sort-of-clevr/multirn-h").ask(Image.new("RGB", (75, 75)), "is the red object on the left?")[0].question
    'Is the red object on the left?'
    """
    shown, path = locate_weights(name)
    return Reasoner(shown, *load_model(path))
