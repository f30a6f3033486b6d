"""What the page about a run says: accuracy beside guesses and a blind model, the curve, the worst answers.

B rows of a batch, Q questions of a row, A answers.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import nn

from bcn.data.baselines import count_answers, guess
from bcn.data.dataset import IGNORE_INDEX, OUT_OF_VOCABULARY, Dataset
from bcn.training.forward import forward, inputs_of, send
from bcn.training.metrics import wilson
from bcn.training.run import Run

RISE = 1.1
"""a validation loss that ends so much above its lowest has risen"""
GAP = 0.1
"""how much better a kind of question has to be answered on training images to be named"""
WORST = 24
BATCH = 16


class Share(NamedTuple):
    """So many answers right, of so many."""

    correct: int
    total: int

    @property
    def accuracy(self) -> float:
        return self.correct / self.total

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.correct, self.total)


class Part(NamedTuple):
    """All questions, a group of kinds, or a kind."""

    name: str
    held_out: Share
    training: Share | None
    """on training images, as many as there are held-out ones; None where they ask no such question"""
    majority: Share
    """always the most frequent answer of training"""
    per_question: Share | None
    """the most frequent answer to the same question; None where nothing is asked"""
    blind: Share | None

    @property
    def is_memorised(self) -> bool:
        """Whether training images are answered better, by more than chance and `GAP`."""
        return (
            self.training is not None
            and self.training.accuracy > self.held_out.accuracy + GAP
            and self.training.interval[0] > self.held_out.interval[1]
        )


class WrongAnswer(NamedTuple):
    image: Image.Image
    """as the model is given it"""
    question: str
    kind: str
    true: str
    given: str
    probability: float


@dataclass(frozen=True)
class Report:
    run: Run
    record: dict[str, Any]
    split: str
    """what is held out: "test", or "val", which also chose the epoch"""
    images: int
    """held out"""
    parts: Sequence[Part]
    """all questions first"""
    curve: Sequence[dict[str, Any]]
    """the epochs of metrics.jsonl"""
    worst: Sequence[WrongAnswer]


class Answers(NamedTuple):
    """A model's answers, one entry for each question."""

    row: np.ndarray
    position: np.ndarray
    """of the question in its row"""
    kind: np.ndarray
    true: np.ndarray
    given: np.ndarray
    probability: np.ndarray


@torch.inference_mode()
def answer_rows(model: nn.Module, dataset: Dataset, rows: range) -> Answers:
    """The answers of a model to every question of some rows."""
    model.eval()
    collected = []
    for start in range(rows.start, rows.stop, BATCH):
        batch = send(dataset[range(start, min(start + BATCH, rows.stop))], model)
        logits, _ = forward(model, *inputs_of(batch, dataset.preprocessing))
        probability_BQ, given_BQ = (part.cpu().reshape(len(logits), -1) for part in logits.softmax(-1).max(-1))
        true_BQ = batch.answer.cpu().reshape(len(logits), -1)
        kind_BQ = torch.zeros_like(true_BQ) if batch.kind is None else batch.kind.cpu()
        row, position = np.nonzero((true_BQ != IGNORE_INDEX).numpy())
        asked = (part.numpy()[row, position] for part in (kind_BQ, true_BQ, given_BQ, probability_BQ))
        collected.append((row + start, position, *asked))
    return Answers(*(np.concatenate(parts) for parts in zip(*collected, strict=True)))


def measure_parts(
    held_out: Dataset, train: Dataset, metrics: dict[str, Any], *, training: Answers, blind: dict[str, Any] | None
) -> list[Part]:
    """All questions, groups and kinds, the largest first.

    Args:
        metrics: of the held-out split, from the record.
        training: the answers to some training images.
        blind: metrics of a blind model, if there is one.
    """
    learned, asked = count_answers(train), count_answers(held_out)
    asks = any(question for questions in asked.values() for question in questions)
    covered = {"all": tuple(asked)} | {name: held_out.kinds[part] for name, part in held_out.question_groups.items()}
    parts = []
    for name, kinds in {**covered, **{kind: (kind,) for kind in held_out.kinds}}.items():
        if not (total := metrics[name]["total"]):
            continue
        # A kind that training does not ask is guessed as all are.
        always, per_question = guess(_merge(learned, kinds) or _merge(learned, learned), _merge(asked, kinds))
        seen = np.isin(training.kind, [train.kinds.index(kind) if kind else 0 for kind in kinds if kind in learned])
        correct = training.true[seen] == training.given[seen]
        parts.append(
            Part(
                name,
                Share(metrics[name]["correct"], total),
                Share(int(correct.sum()), len(correct)) if len(correct) else None,
                Share(always, total),
                Share(per_question, total) if asks else None,
                Share(blind[name]["correct"], total) if blind and blind.get(name, {}).get("total") == total else None,
            )
        )
    return sorted(parts, key=lambda part: -part.held_out.total)


def _merge(counted: dict[str, dict[bytes, Counter[int]]], kinds: Iterable[str]) -> dict[bytes, Counter[int]]:
    merged: dict[bytes, Counter[int]] = {}
    for kind in kinds:
        for question, answers in counted.get(kind, {}).items():
            merged[question] = merged.get(question, Counter()) + answers
    return merged


def find_worst(dataset: Dataset, answers: Answers) -> list[WrongAnswer]:
    """The most confident wrong answers."""
    wrong = np.flatnonzero(answers.true != answers.given)
    worst = []
    for index in wrong[np.argsort(-answers.probability[wrong], kind="stable")][:WORST]:
        batch = dataset[[int(answers.row[index])]]
        question, true = "", int(answers.true[index])
        if batch.question is not None:
            question = dataset.to_sentence(batch.question[0, int(answers.position[index])])
        pixels_HWC = batch.image[0].permute(1, 2, 0).numpy()
        worst.append(
            WrongAnswer(
                Image.fromarray(pixels_HWC if pixels_HWC.shape[2] == 3 else pixels_HWC[..., 0]).convert("RGB"),
                question,
                dataset.kinds[int(answers.kind[index])] if dataset.kinds else "",
                "none that training has" if true == OUT_OF_VOCABULARY else dataset.answers[true],
                dataset.answers[int(answers.given[index])],
                float(answers.probability[index]),
            )
        )
    return worst


def find_overfitting(curve: Sequence[dict[str, Any]]) -> int | None:
    """The epoch after which a run overfits; None where it does not.

    That is the epoch of the lowest validation loss, if the validation loss ends more than 10 % above it while the
    training loss ends below what it was then.

    >>> losses = [(1.0, 1.0), (0.6, 0.8), (0.3, 1.1)]
    >>> find_overfitting([{"epoch": n + 1, "loss": a, "val_loss": b} for n, (a, b) in enumerate(losses)])
    2
    """
    validated = [entry for entry in curve if "val_loss" in entry]
    if not validated:
        return None
    lowest, last = min(validated, key=lambda entry: float(entry["val_loss"])), validated[-1]
    rises = last["val_loss"] > RISE * lowest["val_loss"] and last["loss"] < lowest["loss"]
    return int(lowest["epoch"]) if rises else None
