"""Ask a trained model about an image: `bcn.load(name)` gives a Reasoner, `reasoner.ask(image, questions)` its answers.

Q questions of D numbers, A answers, K broadcast channels, C x H x W pixels, h x w positions of the map the BCN sees.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from bcn.data.dataset import Preprocessing
from bcn.data.images import Picture, fit, read_picture, resize
from bcn.data.sort_of_clevr import from_sentence, to_sentence
from bcn.data.vqa.vocabulary import UNKNOWN, Vocabulary
from bcn.errors import BcnError, did_you_mean
from bcn.io import checksum, read_json
from bcn.models.registry import image_shape, list_models
from bcn.training.evaluate import ask as run
from bcn.training.weights import load_trained

WEIGHTS = Path(__file__).parent / "weights"
NEEDED = ("model", "answers", "kinds", "preprocessing", "data", "scale", "localise")
"""what a weights file says of itself to be asked"""
READERS: dict[str, tuple[Callable[[str], np.ndarray], Callable[[np.ndarray], str]]] = {
    "sort-of-clevr": (from_sentence, to_sentence)
}
"""by family of models: a sentence as numbers, and back as it was understood"""


@dataclass(frozen=True)
class Answer:
    """What a model answers, how sure it is, and what else it could be."""

    answer: str
    probability: float
    others: tuple[tuple[str, float], ...]
    """the other answers with their probabilities, the most probable first"""
    question: str | None = None
    """as it was understood; None where nothing was asked"""
    centre: tuple[float, float] | None = None
    """x and y as shares of the image's sides, for models that say where"""


class Broadcast(NamedTuple):
    """What a BCN broadcasts about an image."""

    value: np.ndarray
    """(K,)"""
    position: np.ndarray
    """(K,) from where in the map each channel came, counted row by row"""
    size: tuple[int, int]
    """h and w"""

    def counts(self) -> np.ndarray:
        """(h, w) how many channels each position supplied (section 5.4); a channel that is zero carries nothing."""
        return np.bincount(self.position[self.value > 0], minlength=self.size[0] * self.size[1]).reshape(self.size)


class Reasoner:
    """A trained model with everything it needs to be asked: how images are prepared, what its answers are called."""

    def __init__(self, name: str, model: nn.Module, description: dict[str, Any]) -> None:
        if missing := [key for key in NEEDED if key not in description]:
            raise BcnError(f"{name} does not say its {' and '.join(missing)}; give weights that `bcn train` wrote")
        self.name, self.model, self.description = name, model.eval(), description
        self.family = str(description["model"]).split("/")[0]
        self.answers: tuple[str, ...] = tuple(description["answers"])
        self.preprocessing = Preprocessing(**{key: tuple(part) for key, part in description["preprocessing"].items()})

    def __repr__(self) -> str:
        return f"Reasoner({self.name!r}, {self.description['model']}, trained on {self.description['data']})"

    @property
    def asks(self) -> bool:
        """Whether it answers questions; otherwise it says what an image shows."""
        return bool(self.description["kinds"]) or self.in_words

    @property
    def in_words(self) -> bool:
        """Whether it reads a question word by word."""
        return "words" in self.description

    @property
    def broadcasts(self) -> bool:
        return getattr(self.model, "broadcast", None) is not None

    def ask(self, image: Picture, questions: str | Sequence[str]) -> list[Answer]:
        """The answer to each question; all of them share one pass over the image."""
        questions = [questions] if isinstance(questions, str) else questions
        if not isinstance(questions, Sequence) or not all(isinstance(question, str) for question in questions):
            raise BcnError(f"{questions!r} was asked: accepted are a sentence or a list of them")
        if not self.asks:
            raise BcnError(f"{self.name} takes no questions: it says what an image shows, with `find`")
        if self.family not in READERS and not self.in_words:
            raise BcnError(f"{self.name} takes no sentences: weights for {' and '.join(READERS)} do")
        if not questions:
            return []
        if self.in_words:
            question_QD, understood = read_words(questions, self.description["words"])
        else:
            read, write = READERS[self.family]
            question_QD = np.stack([read(question) for question in questions])
            understood = [write(bits) for bits in question_QD]
        probability_QA = self.probabilities(image, question_QD)
        return [self._answer(row, question=text) for row, text in zip(probability_QA, understood, strict=True)]

    def find(self, image: Picture) -> Answer:
        """What an image shows and, where the model was trained to say it, where."""
        if self.asks:
            raise BcnError(f"{self.name} answers questions: use `ask`, or weights for Scaled-MNIST to find digits")
        logits_1A, centre_12 = self._run(image, None)
        x_y = centre_12[0].tolist() if centre_12 is not None and self.description["localise"] else None
        return self._answer(logits_1A.softmax(-1)[0].numpy(), centre=(x_y[0], x_y[1]) if x_y else None)

    def probabilities(self, image: Picture, question_QD: np.ndarray) -> np.ndarray:
        """(Q, A) of questions as the numbers that the model takes."""
        numbers = np.asarray(question_QD, np.int64 if self.in_words else np.float32)
        logits_1QA, _ = self._run(image, torch.from_numpy(numbers)[None])
        return np.asarray(logits_1QA[0].softmax(-1))

    @torch.inference_mode()
    def broadcast(self, image: Picture) -> Broadcast:
        """What its BCN broadcasts about an image, and from where."""
        if not self.broadcasts:
            raise BcnError(f"{self.name} has no BCN and so no map: choose weights of a model with one")
        map_1Chw = self.model.features(self.pixels(image))  # type: ignore[operator]
        value_1K, position_1K = self.model.broadcast.pooled(map_1Chw)  # type: ignore[operator, union-attr]
        return Broadcast(value_1K[0].numpy(), position_1K[0].numpy(), (map_1Chw.shape[2], map_1Chw.shape[3]))

    def pixels(self, image: Picture) -> Tensor:
        """(1, C, H, W) as the model sees it."""
        size = image_shape(str(self.description["model"]))
        pixels_CHW = resize(read_picture(image), size) if self.in_words else fit(read_picture(image), size)
        return self.preprocessing(torch.from_numpy(pixels_CHW)[None])

    @torch.inference_mode()
    def _run(self, image: Picture, question_1QD: Tensor | None) -> tuple[Tensor, Tensor | None]:
        return run(self.model, self.pixels(image), question_1QD)

    def _answer(self, probability_A: np.ndarray, **more: Any) -> Answer:
        ranked = sorted(zip(self.answers, probability_A.tolist(), strict=True), key=lambda pair: -pair[1])
        return Answer(*ranked[0], tuple(ranked[1:]), **more)


def shipped(directory: Path | None = None) -> dict[str, dict[str, Any]]:
    """The weights that come with the package: by name, the file, its checksum and its evidence."""
    index = (directory or WEIGHTS) / "index.json"
    return dict(read_json(index, "install bcn again")) if index.exists() else {}


def read_words(questions: Sequence[str], words: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """Questions as the numbers of their words, padded with 0, and as they were understood, ? for an unknown word."""
    vocabulary = Vocabulary(tuple(words))
    encoded = [vocabulary.encode(question) for question in questions]
    for question, numbers in zip(questions, encoded, strict=True):
        if set(numbers) <= {UNKNOWN}:
            some = ", ".join(vocabulary.words[:12])
            raise BcnError(f"{question!r} has no word that was trained on: ask with words such as {some}")
    padded_QL = np.zeros((len(encoded), max(map(len, encoded))), np.int64)
    for row, numbers in zip(padded_QL, encoded, strict=True):
        row[: len(numbers)] = numbers
    return padded_QL, [" ".join(vocabulary.decode(numbers)) for numbers in encoded]


def load(name: str | Path) -> Reasoner:
    """A reasoner by the name of shipped weights, or from the path of a run's directory or a weights file.

    >>> from PIL import Image
    >>> load("sort-of-clevr/multirn-h").ask(Image.new("RGB", (75, 75)), "is the red object on the left?")[0].question
    'Is the red object on the left?'
    """
    if not isinstance(name, str | Path):
        raise BcnError(f"{name!r} is no name of weights: give that of shipped ones, or a path")
    index = shipped()
    if str(name) in index:
        entry = index[str(name)]
        path = WEIGHTS / entry["file"]
        if not path.exists() or checksum(path) != entry["sha256"]:
            raise BcnError(f"the file of the weights {name} is missing or damaged; install bcn again")
        return Reasoner(str(name), *load_trained(path))
    path = Path(name)
    if path.exists():
        return Reasoner(path.name, *load_trained(path))
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
