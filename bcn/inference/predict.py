"""The answers of a model to every question of a data set, in the order of its file."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from bcn.data.vqa.dataset import QuestionDataset
from bcn.errors import BcnError
from bcn.inference.shipped import locate_weights
from bcn.io import atomic_write
from bcn.models.registry import image_shape
from bcn.training.device import find_device
from bcn.training.environment import default_threads, keep_memory
from bcn.training.forward import check_fit, forward, inputs_of, send
from bcn.training.weights import load_model


class Prediction(NamedTuple):
    question_index: int
    answer: str


@torch.inference_mode()
def predict(model: nn.Module, dataset: QuestionDataset, *, name: str, batch_size: int = 16) -> list[Prediction]:
    """Answer every question of a data set, which need not have the true answers.

    Args:
        name: of the model, for error messages.
        batch_size: images in a batch.
    """
    check_fit(model, dataset, name)
    model.eval()
    predictions: dict[int, Prediction] = {}
    for start in range(0, len(dataset), batch_size):
        rows = range(start, min(start + batch_size, len(dataset)))
        batch = send(dataset[rows], model)
        logits_BQA, _ = forward(model, *inputs_of(batch, dataset.preprocessing))
        for row, answers in zip(rows, logits_BQA.argmax(-1).tolist(), strict=True):
            # A row with fewer questions than others ends with padding.
            for question, answer in zip(dataset.questions(row), answers, strict=False):
                index, line = int(dataset.question_index[question]), int(dataset.position[question])
                predictions[line] = Prediction(index, dataset.answers[answer])
    return [predictions[line] for line in sorted(predictions)]


def check_suffix(path: Path) -> None:
    """Refuse a file that `write_predictions` cannot write."""
    if path.suffix not in (".txt", ".json"):
        raise BcnError(f"--out {path}: give a name that ends in .txt, an answer per line, or in .json")


def write_predictions(predictions: list[Prediction], path: Path) -> None:
    """Write the answers, one per line, or with their `question_index` as JSON."""
    if path.suffix == ".json":
        text = json.dumps([prediction._asdict() for prediction in predictions])
    else:
        text = "\n".join(prediction.answer for prediction in predictions)
    with atomic_write(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def load_question_model(weights: str | Path, *, device: str | None = None) -> tuple[nn.Module, dict[str, Any], int]:
    """A model that takes questions in words, its description, and the width and height of its images.

    Args:
        weights: what `locate_weights` takes.
    """
    keep_memory()
    torch.set_num_threads(default_threads())
    model, description = load_model(locate_weights(weights)[1])
    if "words" not in description:
        raise BcnError(f"{weights} holds {description['model']}, which is not asked in words: give a model of CLEVR's")
    return model.to(find_device(device)), description, image_shape(description["model"])[1]
