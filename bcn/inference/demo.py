"""`make demo`: the main job with the shipped weights. New scenes, all their questions, accuracy, pictures."""

from pathlib import Path

import torch
from PIL import Image, ImageDraw

from bcn.data.dataset import Dataset
from bcn.data.registry import open_dataset
from bcn.data.sort_of_clevr import to_sentence
from bcn.inference.overlay import overlay, write_picture
from bcn.inference.reasoner import Reasoner, load
from bcn.paper.tables import published
from bcn.training.evaluate import evaluate, metrics

WEIGHTS = "sort-of-clevr/multirn-h"
SCENES, SHOWN, EACH = 500, 4, 6
"""scenes that are answered, those in the picture, and the questions shown about each"""
SIDE, LINE = 150, 24


def demo(directory: Path, *, weights: str = WEIGHTS, seed: int = 2018) -> None:
    """Answer all 36 questions about scenes that no training has seen; print accuracy by kind, and draw some."""
    reasoner = load(weights)
    dataset = open_dataset(reasoner.description["data"], "test", images=SCENES, seed=seed, questions="all")
    found = metrics(evaluate(reasoner.model, dataset, batch_size=20, localise=False), dataset)
    paper = dict(published("table3", "multirn-h"))
    print(f"{SCENES} new scenes, all 36 questions about each, {weights}\n")
    print(f"{'kind':16} {'ours':>6}  {'95 % interval':>14}  {'paper':>5}")
    for kind, figure in found.items():
        if isinstance(figure, dict) and "interval" in figure:
            low, high = (100 * bound for bound in figure["interval"])
            beside = f"{paper[kind]:5.1f}" if kind in paper else "    -"
            print(f"{kind.replace('_', '-'):16} {100 * figure['accuracy']:6.2f}  {low:6.2f} - {high:5.2f}  {beside}")
    path = directory / "answers.png"
    write_picture(draw(reasoner, dataset), path)
    print(f"\nscenes, what is broadcast from where, questions and answers: {path}")


def draw(reasoner: Reasoner, dataset: Dataset) -> Image.Image:
    """Scenes, the same with the activation map, and some questions with what the model answers."""
    batch = dataset[range(SHOWN)]
    assert batch.question is not None
    chosen = torch.linspace(0, batch.question.shape[1] - 1, EACH).long().tolist()
    sheet = Image.new("RGB", (2 * SIDE + 720, SHOWN * (SIDE + 10)), "white")
    pen = ImageDraw.Draw(sheet)
    for row, pixels in enumerate(batch.image):
        image, top = Image.fromarray(pixels.permute(1, 2, 0).numpy()), row * (SIDE + 10) + 5
        mapped = overlay(image, reasoner.broadcast(image).counts())
        for place, picture in enumerate((image, mapped)):
            left = 5 + place * (SIDE + 10)
            sheet.paste(picture.resize((SIDE, SIDE), Image.Resampling.NEAREST), (left, top))
            pen.rectangle((left, top, left + SIDE, top + SIDE), outline="grey")
        questions = batch.question[row]
        answers = reasoner.probabilities(image, questions.numpy()).argmax(-1)
        for place, q in enumerate(chosen):
            right = int(batch.answer[row, q])
            verdict = "right" if answers[q] == right else f"wrong: {dataset.answers[right]}"
            text = f"{to_sentence(questions[q])} {dataset.answers[answers[q]]} ({verdict})"
            pen.text((2 * SIDE + 30, top + 3 + place * LINE), text, fill="black", font_size=14)
    return sheet
