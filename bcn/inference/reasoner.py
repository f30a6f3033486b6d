"""Ask a trained model about an image: `bcn.load(name)` gives a Reasoner, `reasoner.ask(image, questions)` its answers.

Q questions of D numbers, A answers, C x H x W pixels.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from bcn.data.dataset import Preprocessing
from bcn.data.images import ImageInput, fit, read_image, resize
from bcn.data.sort_of_clevr import from_sentence, to_sentence
from bcn.data.vqa.vocabulary import UNKNOWN, Vocabulary
from bcn.errors import BcnError, did_you_mean
from bcn.inference.answer import Answer
from bcn.inference.broadcast import Broadcast, Output, forward_with_broadcast, pool
from bcn.io import checksum, read_json
from bcn.models.registry import image_shape, list_models
from bcn.training.forward import device_of
from bcn.training.weights import load_model

WEIGHTS = Path(__file__).parent / "weights"
INDEXED = ("file", "sha256", "data", "recipe", "scale")
"""what an entry of the index of weights has to contain"""
SENTENCE_CODECS: dict[str, tuple[Callable[[str], np.ndarray], Callable[[np.ndarray], str]]] = {
    "sort-of-clevr": (from_sentence, to_sentence)
}
"""by family of models: what turns a sentence into a question vector, and back into a sentence"""


class EncodedQuestions(NamedTuple):
    """Questions as a model takes them."""

    numbers_QD: np.ndarray
    """question vectors, or token indices padded with 0"""
    texts: list[str]
    """each question as the model understood it"""


class Reasoner:
    """A trained model with what using it takes: the preprocessing of images and the names of its answers."""

    def __init__(self, name: str, model: nn.Module, description: dict[str, Any]) -> None:
        self.name, self.model, self.description = name, model.eval(), description
        self.family = str(description["model"]).split("/")[0]
        self.answers: tuple[str, ...] = tuple(description["answers"])
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
        """Whether the model has a BCN, and so an activation map."""
        return getattr(self.model, "broadcast", None) is not None

    def ask(self, image: ImageInput, questions: str | Sequence[str]) -> list[Answer]:
        """Answer each question; all of them share one pass of the CNN and the BCN over the image.

        Args:
            image: a path, a PIL image, or an array of uint8 (H, W) or (H, W, 3).
            questions: one question in English, or several.
        """
        encoded = self.encode(questions)
        return self.answer_with_broadcast(image, encoded)[0] if encoded.texts else []

    def find(self, image: ImageInput) -> Answer:
        """Classify an image and, where the model was trained to localise, say where the object is."""
        (answer,), _ = self.answer_with_broadcast(image)
        return answer

    def encode(self, questions: str | Sequence[str]) -> EncodedQuestions:
        """Questions in English as the numbers that the model takes."""
        questions = [questions] if isinstance(questions, str) else questions
        if not isinstance(questions, Sequence) or not all(isinstance(question, str) for question in questions):
            raise BcnError(f"{questions!r} was asked: accepted are a sentence or a list of them")
        if not self.takes_questions:
            raise BcnError(f"{self.name} takes no questions: it classifies an image, with `find`")
        if self.family not in SENTENCE_CODECS and not self.takes_words:
            raise BcnError(f"{self.name} takes no sentences: weights for {' and '.join(SENTENCE_CODECS)} do")
        if not questions:
            return EncodedQuestions(np.zeros((0, 0)), [])
        if self.takes_words:
            return encode_words(questions, self.description["words"])
        encode, decode = SENTENCE_CODECS[self.family]
        numbers_QD = np.stack([encode(question) for question in questions])
        return EncodedQuestions(numbers_QD, [decode(numbers) for numbers in numbers_QD])

    def answer_with_broadcast(
        self, image: ImageInput, questions: EncodedQuestions | None = None
    ) -> tuple[list[Answer], Broadcast | None]:
        """The answers, and what the BCN broadcasts, from one forward pass; None for a model without a BCN.

        Args:
            questions: what `encode` gives; without questions, the class of the image is the one answer.
        """
        if questions is None and self.takes_questions:
            raise BcnError(f"{self.name} answers questions: use `ask`, or weights for Scaled-MNIST to find digits")
        output = self._forward(image, None if questions is None else questions.numbers_QD)
        probability_QA, centre = output.logits.softmax(-1), None
        if questions is not None:
            probability_QA = probability_QA[0]
        elif output.centre_B2 is not None and self.description["localise"]:
            x, y = output.centre_B2[0].tolist()
            centre = (x, y)
        texts = [None] if questions is None else questions.texts
        answers = [
            Answer.ranked(self.answers, probability_A, question=text, centre=centre)
            for probability_A, text in zip(probability_QA.tolist(), texts, strict=True)
        ]
        return answers, None if output.pooled is None else Broadcast.of(output.pooled)

    def probabilities(self, image: ImageInput, question_QD: np.ndarray) -> np.ndarray:
        """(Q, A) of questions that are already encoded."""
        return np.asarray(self._forward(image, question_QD).logits[0].softmax(-1).cpu())

    @torch.inference_mode()
    def broadcast(self, image: ImageInput) -> Broadcast:
        """What the BCN broadcasts about an image, and from where."""
        if not self.has_bcn:
            raise BcnError(f"{self.name} has no BCN and so no map: choose weights of a model with one")
        return Broadcast.of(pool(self.model, self.pixels(image)))

    def pixels(self, image: ImageInput) -> Tensor:
        """Read and preprocess an image: the (1, C, H, W) input of the model."""
        size = image_shape(str(self.description["model"]))
        pixels_CHW = resize(read_image(image), size) if self.takes_words else fit(read_image(image), size)
        return self.preprocessing(torch.from_numpy(pixels_CHW)[None].to(device_of(self.model)))

    @torch.inference_mode()
    def _forward(self, image: ImageInput, question_QD: np.ndarray | None) -> Output:
        question_1QD = None
        if question_QD is not None:
            question_1QD = torch.as_tensor(question_QD, dtype=self.question_dtype)[None].to(device_of(self.model))
        output = forward_with_broadcast(self.model, self.pixels(image), question_1QD)
        if not output.logits.isfinite().all():
            raise BcnError(f"{self.name} gives no finite numbers for this image: its weights are no use, load others")
        return output


def list_weights(directory: Path | None = None) -> dict[str, dict[str, Any]]:
    """The weights that ship with the package: by name, the file, its checksum and its evidence."""
    path = (directory or WEIGHTS) / "index.json"
    index = read_json(path, "install bcn again") if path.exists() else {}
    if not isinstance(index, dict) or not all(map(_is_indexed, index.values())):
        raise BcnError(f"{path} does not name a file, its sha256 and its origin for all weights; install bcn again")
    return index


def _is_indexed(entry: Any) -> bool:
    named = isinstance(entry, dict) and all(isinstance(entry.get(key), str) for key in INDEXED)
    return named and re.fullmatch(r"[\w-]+\.safetensors", entry["file"]) is not None


def encode_words(questions: Sequence[str], words: Sequence[str]) -> EncodedQuestions:
    """Questions as token indices, padded with 0; in the texts, ? stands for a word that is not in the vocabulary."""
    vocabulary = Vocabulary(tuple(words))
    encoded = [vocabulary.encode(question) for question in questions]
    for question, numbers in zip(questions, encoded, strict=True):
        if set(numbers) <= {UNKNOWN}:
            some = ", ".join(vocabulary.words[:12])
            raise BcnError(f"{question!r} has no word that was trained on: ask with words such as {some}")
    padded_QL = np.zeros((len(encoded), max(map(len, encoded))), np.int64)
    for row, numbers in zip(padded_QL, encoded, strict=True):
        row[: len(numbers)] = numbers
    return EncodedQuestions(padded_QL, [" ".join(vocabulary.decode(numbers)) for numbers in encoded])


def load(name: str | Path) -> Reasoner:
    """Load a trained model.

    Args:
        name: of shipped weights (`list_weights`), or the path of a run's directory or of a weights file.

    >>> from PIL import Image
    >>> load("sort-of-clevr/multirn-h").ask(Image.new("RGB", (75, 75)), "is the red object on the left?")[0].question
    'Is the red object on the left?'
    """
    if not isinstance(name, str | Path):
        raise BcnError(f"{name!r} is no name of weights: give that of shipped ones, or a path")
    index = list_weights()
    if str(name) in index:
        entry = index[str(name)]
        path = WEIGHTS / entry["file"]
        if not path.exists() or checksum(path) != entry["sha256"]:
            raise BcnError(f"the file of the weights {name} is missing or damaged; install bcn again")
        return Reasoner(str(name), *load_model(path))
    path = Path(name)
    if path.exists():
        return Reasoner(path.name, *load_model(path))
    if index and str(name) in list_models():
        raise BcnError(
            f"no weights of {name} are shipped, only of {', '.join(index)}: train it (`bcn recipes` names the recipes) "
            "and give the run's directory or a .safetensors file"
        )
    if index:
        raise did_you_mean("weights (neither shipped nor a path)", str(name), index)
    raise BcnError(
        f"there are no weights {str(name)!r}: none are shipped with this version, so train some "
        "(`bcn train table3/multirn-h --scale cpu`) and give the run's directory or a .safetensors file"
    )
