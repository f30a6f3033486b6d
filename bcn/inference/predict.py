"""The answers of a model to every question of a data set, in the order of its file."""

from typing import NamedTuple

import torch
from torch import nn

from bcn.data.vqa.dataset import QuestionDataset
from bcn.training.forward import check_fit, forward


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
        batch = dataset[rows]
        logits_BQA, _ = forward(model, dataset.preprocessing(batch.image), batch.question)
        for row, answers in zip(rows, logits_BQA.argmax(-1).tolist(), strict=True):
            # A row with fewer questions than others ends with padding.
            for question, answer in zip(dataset.questions(row), answers, strict=False):
                index, line = int(dataset.question_index[question]), int(dataset.position[question])
                predictions[line] = Prediction(index, dataset.answers[answer])
    return [predictions[line] for line in sorted(predictions)]
