"""`make demo`: the main job from nothing. Makes scenes, trains multiRN on them for a few minutes, answers new ones."""

from dataclasses import replace
from pathlib import Path

import torch
from PIL import Image, ImageDraw

from bcn.data.registry import open_dataset
from bcn.data.sort_of_clevr import to_sentence
from bcn.engine.train import train
from bcn.engine.trained import load_trained
from bcn.paper.recipes import find_recipe
from bcn.paper.tables import published

SHOWN, EACH = 4, 6
"""scenes in the picture, and questions about each"""


def demo(directory: Path) -> None:
    """Train, answer, print accuracy by kind beside the paper's, and draw some scenes with their answers."""
    recipe = find_recipe("table3/multirn", "cpu")
    data = replace(recipe.data, train=4000, val=200, test=500)
    recipe = replace(recipe, name="demo/multirn", data=data, epochs=8, non_relational_first=4)
    print("No trained weights are shipped yet: training multiRN briefly on generated scenes.")
    print("It learns the non-relational questions; relations take an hour (bcn train table3/multirn-h --scale cpu).\n")
    record = train(recipe, seed=0, runs=directory)
    figures, paper = record["metrics"]["test"], dict(published("table3", "multirn"))
    print(f"\n{'500 new scenes':16} {'ours':>6}   paper (trained in full)")
    for kind, figure in figures.items():
        if isinstance(figure, dict) and "accuracy" in figure:
            beside = f"{paper[kind]:8.1f}" if kind in paper else ""
            print(f"{kind.replace('_', '-'):16} {100 * figure['accuracy']:6.1f} {beside}")
    path = directory / "answers.png"
    draw(directory / record["run"] / "best.safetensors", path)
    print(f"\nscenes, questions and answers: {path}")


def draw(weights: Path, path: Path) -> None:
    """Scenes with questions, what the model answers, and where it is wrong."""
    model, description = load_trained(weights)
    dataset = open_dataset(description["data"], "test", images=SHOWN)
    batch = dataset[range(SHOWN)]
    assert batch.question is not None
    chosen = torch.linspace(0, batch.question.shape[1] - 1, EACH).long()
    with torch.inference_mode():
        answers = model(dataset.preprocessing(batch.image), batch.question).argmax(-1)
    side, line = 150, 24
    sheet = Image.new("RGB", (900, SHOWN * (side + 10)), "white")
    pen = ImageDraw.Draw(sheet)
    for row, image in enumerate(batch.image):
        top = row * (side + 10)
        pixels = Image.fromarray(image.permute(1, 2, 0).numpy())
        sheet.paste(pixels.resize((side, side), Image.Resampling.NEAREST), (5, top + 5))
        pen.rectangle((5, top + 5, 5 + side, top + 5 + side), outline="grey")
        for place, q in enumerate(chosen.tolist()):
            said, right = answers[row, q], batch.answer[row, q]
            verdict = "right" if said == right else f"wrong: {dataset.answers[right]}"
            text = f"{to_sentence(batch.question[row, q])} {dataset.answers[said]} ({verdict})"
            pen.text((side + 20, top + 8 + place * line), text, fill="black", font_size=14)
    sheet.save(path)
