"""A contact sheet: the first images of a data set with their labels, to be looked at."""

import textwrap

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from bcn.data.dataset import Batch, Dataset
from bcn.data.sort_of_clevr.sentences import to_sentence

WIDTH = 160
"""the least width of a picture on the sheet; smaller images are enlarged by a whole number"""
MARGIN, LINE, FONT_SIZE = 8, 16, 13
QUESTIONS = 4


def contact_sheet(dataset: Dataset, images: int, *, columns: int = 6) -> Image.Image:
    """The first `images`, each above its class or some of its questions, with a cross on its centre where known."""
    batch = dataset[np.arange(min(images, len(dataset)))]
    count, _, height, width = batch.image.shape
    scale = -(-WIDTH // width)
    columns = min(columns, count)
    font = ImageFont.load_default(FONT_SIZE)
    letters = int(width * scale / font.getlength("n"))
    captions = [caption(dataset, batch, number, letters) for number in range(count)]
    cell_width, cell_height = width * scale + MARGIN, height * scale + MARGIN + LINE * max(map(len, captions))
    sheet = Image.new("RGB", (MARGIN + columns * cell_width, MARGIN + -(-count // columns) * cell_height), "white")
    draw = ImageDraw.Draw(sheet)
    for number, lines in enumerate(captions):
        left, top = MARGIN + number % columns * cell_width, MARGIN + number // columns * cell_height
        sheet.paste(_picture(batch, number, scale), (left, top))
        draw.rectangle([left - 1, top - 1, left + width * scale, top + height * scale], outline="gray")
        for line, text in enumerate(lines):
            draw.text((left, top + height * scale + 1 + line * LINE), text, fill="black", font=font)
    return sheet


def _picture(batch: Batch, number: int, scale: int) -> Image.Image:
    pixels_HWC = batch.image[number].permute(1, 2, 0).numpy()
    picture = Image.fromarray(pixels_HWC if pixels_HWC.shape[2] == 3 else pixels_HWC[..., 0]).convert("RGB")
    picture = picture.resize((picture.width * scale, picture.height * scale), Image.Resampling.NEAREST)
    if batch.centre is not None:
        x, y = (batch.centre[number].numpy() * picture.size).tolist()
        draw = ImageDraw.Draw(picture)
        draw.line([x - 5, y, x + 5, y], fill="red")
        draw.line([x, y - 5, x, y + 5], fill="red")
    return picture


def caption(dataset: Dataset, batch: Batch, number: int, letters: int) -> list[str]:
    """The class of an image, or some of its questions with their answers, in lines of so many letters."""
    answer_Q = batch.answer[number]
    if batch.question is None:
        return [f"{number}: {dataset.answers[int(answer_Q)]}"]
    question_QD = batch.question[number]
    asked = question_QD.any(dim=1).nonzero()[:, 0].tolist()  # the others are padding
    lines = []
    for place in np.unique(np.linspace(0, len(asked) - 1, QUESTIONS).round().astype(int)):
        bits, answer = question_QD[asked[place]], int(answer_Q[asked[place]])
        words = dataset.vocabulary is not None and " ".join(dataset.vocabulary.decode(bits.tolist())) + "?"
        said = dataset.answers[answer] if answer >= 0 else "(not known)"
        lines += textwrap.wrap(f"{words or to_sentence(bits)} {said}", letters, subsequent_indent="   ")
    return lines
