"""`bcn demo`: new scenes, all questions about them, accuracy by kind of question, and a picture of some answers."""

from collections.abc import Mapping
from pathlib import Path

import torch
from PIL import Image, ImageDraw

from bcn.data.dataset import Dataset
from bcn.data.registry import open_dataset
from bcn.inference import DEFAULT_WEIGHTS
from bcn.inference.overlay import overlay, write_image
from bcn.inference.reasoner import EncodedQuestions, Reasoner, load
from bcn.training.metrics import compute_metrics, evaluate

SCENES, SHOWN, EACH = 500, 4, 6
"""scenes that are evaluated, scenes in the picture, and questions shown about each of those"""
SIDE, LINE = 150, 24


def demo(
    directory: Path,
    *,
    published: Mapping[str, float],
    weights: str = DEFAULT_WEIGHTS,
    seed: int = 2018,
    device: torch.device | None = None,
) -> None:
    """Answer all questions about scenes that were not in training; print accuracy by kind, and draw some.

    Args:
        published: accuracy by kind of question, in percent, as the paper reports it.
        device: where the model runs, the CPU by default.
    """
    reasoner = load(weights).to(device or torch.device("cpu"))
    dataset = open_dataset(reasoner.description["data"], "test", images=SCENES, seed=seed, questions="all")
    measured = compute_metrics(evaluate(reasoner.model, dataset, batch_size=20, localise=False), dataset)
    in_paper = any(kind in published for kind in measured)
    print(f"{SCENES} new scenes of {dataset.name}, all questions about each, {weights}\n")
    print(f"{'kind':16} {'ours':>6}  {'95 % interval':>14}" + f"  {'paper':>5}" * in_paper)
    for kind, counts in measured.items():
        if isinstance(counts, dict) and "interval" in counts:
            low, high = (100 * bound for bound in counts["interval"])
            paper = f"  {published[kind]:5.1f}" if kind in published else "      -" * in_paper
            print(f"{kind.replace('_', '-'):16} {100 * counts['accuracy']:6.2f}  {low:6.2f} - {high:5.2f}{paper}")
    path = directory / "answers.png"
    write_image(draw(reasoner, dataset), path)
    print(f"\nscenes,{' activation maps,' * reasoner.has_bcn} questions and answers: {path}")


def draw(reasoner: Reasoner, dataset: Dataset) -> Image.Image:
    """Scenes, the same with their activation maps where there is a BCN, and some questions with the answers."""
    batch = dataset[range(SHOWN)]
    assert batch.question is not None
    columns = 1 + reasoner.has_bcn
    sheet = Image.new("RGB", (columns * (SIDE + 10) + 700, SHOWN * (SIDE + 10)), "white")
    pen = ImageDraw.Draw(sheet)
    for row, pixels in enumerate(batch.image):
        image, top = Image.fromarray(pixels.permute(1, 2, 0).numpy()), row * (SIDE + 10) + 5
        asked = torch.nonzero(batch.answer[row] >= 0)[:, 0]  # without padding
        chosen = asked[torch.linspace(0, len(asked) - 1, EACH).long()].tolist()
        questions = [batch.question[row, q] for q in chosen]
        texts = [dataset.to_sentence(question) for question in questions]
        encoded = EncodedQuestions(torch.stack(questions).numpy(), texts)
        answers, broadcast = reasoner.answer_with_broadcast(image, encoded)
        shown_map = broadcast if reasoner.has_bcn else None
        maps = [] if shown_map is None else [overlay(image, shown_map.counts(), shown_map.edges())]
        for column, shown in enumerate([image, *maps]):
            left = 5 + column * (SIDE + 10)
            sheet.paste(shown.resize((SIDE, SIDE), Image.Resampling.NEAREST), (left, top))
            pen.rectangle((left, top, left + SIDE, top + SIDE), outline="grey")
        for line, (q, answer) in enumerate(zip(chosen, answers, strict=True)):
            truth = dataset.answers[int(batch.answer[row, q])]
            verdict = "right" if answer.answer == truth else f"wrong: {truth}"
            text = f"{answer.question} {answer.answer} ({verdict})"
            pen.text((columns * (SIDE + 10) + 10, top + 3 + line * LINE), text, fill="black", font_size=14)
    return sheet
