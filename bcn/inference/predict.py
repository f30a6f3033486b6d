"""What a model answers to the questions of a data set, in the order of its file."""

from typing import NamedTuple

import torch
from torch import nn

from bcn.data.vqa.dataset import QuestionDataset
from bcn.training.evaluate import ask, check_fit


class Said(NamedTuple):
    number: int
    """`question_index`"""
    answer: str


@torch.inference_mode()
def predict(model: nn.Module, dataset: QuestionDataset, *, name: str, batch: int = 16) -> list[Said]:
    """The answer to every question, whether or not the data set has one, in the order of its file."""
    check_fit(model, dataset, name)
    model.eval()
    said: dict[int, Said] = {}
    for start in range(0, len(dataset), batch):
        rows = range(start, min(start + batch, len(dataset)))
        part = dataset[rows]
        logits_BQA, _ = ask(model, dataset.preprocessing(part.image), part.question)
        for row, answers in zip(rows, logits_BQA.argmax(-1).tolist(), strict=True):
            # A row with fewer questions than others ends with padding.
            for question, answer in zip(dataset.questions(row), answers, strict=False):
                said[int(dataset.place[question])] = Said(int(dataset.number[question]), dataset.answers[answer])
    return [said[place] for place in sorted(said)]
