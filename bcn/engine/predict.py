"""What a model answers to the questions of a data set, by the number that each question has in its file."""

import torch
from torch import nn

from bcn.data.clevr.format import QuestionDataset
from bcn.engine.evaluate import ask, check_fit


@torch.inference_mode()
def predict(model: nn.Module, dataset: QuestionDataset, *, name: str, batch: int = 16) -> dict[int, str]:
    """The answer to every question, whether or not the data set has one, in the order of its file."""
    check_fit(model, dataset, name)
    model.eval()
    said: dict[int, str] = {}
    for start in range(0, len(dataset), batch):
        rows = range(start, min(start + batch, len(dataset)))
        part = dataset[rows]
        logits_BQA, _ = ask(model, dataset.preprocessing(part.image), part.question)
        for row, answers in zip(rows, logits_BQA.argmax(-1).tolist(), strict=True):
            # A row with fewer questions than others ends with padding.
            said |= {number: dataset.answers[i] for number, i in zip(dataset.questions(row), answers, strict=False)}
    return dict(sorted(said.items()))
