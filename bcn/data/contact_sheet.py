"""A contact sheet: the first images of a data set with their labels."""

import textwrap

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from bcn.data.dataset import Batch, Dataset

MIN_WIDTH = 160
"""of an image on the sheet, in pixels; smaller ones are enlarged by a whole number"""
MARGIN, LINE, FONT_SIZE = 8, 16, 13
QUESTIONS = 4
"""shown below each image"""


def contact_sheet(dataset: Dataset, images: int, *, columns: int = 6) -> Image.Image:
    """The first `images`, each above its class or some of its questions, with its centre or boxes where known."""
    batch = dataset[np.arange(min(images, len(dataset)))]
    count, _, height, width = batch.image.shape
    scale = -(-MIN_WIDTH // width)
    columns = min(columns, count)
    font = ImageFont.load_default(FONT_SIZE)
    letters = int(width * scale / font.getlength("n"))
    captions = [caption(dataset, batch, index, letters) for index in range(count)]
    cell_width, cell_height = width * scale + MARGIN, height * scale + MARGIN + LINE * max(map(len, captions))
    sheet = Image.new("RGB", (MARGIN + columns * cell_width, MARGIN + -(-count // columns) * cell_height), "white")
    pen = ImageDraw.Draw(sheet)
    for index, lines in enumerate(captions):
        left, top = MARGIN + index % columns * cell_width, MARGIN + index // columns * cell_height
        sheet.paste(_enlarge(batch, index, scale), (left, top))
        pen.rectangle([left - 1, top - 1, left + width * scale, top + height * scale], outline="gray")
        for line, text in enumerate(lines):
            pen.text((left, top + height * scale + 1 + line * LINE), text, fill="black", font=font)
    return sheet


def _enlarge(batch: Batch, index: int, scale: int) -> Image.Image:
    pixels_HWC = batch.image[index].permute(1, 2, 0).numpy()
    image = Image.fromarray(pixels_HWC if pixels_HWC.shape[2] == 3 else pixels_HWC[..., 0]).convert("RGB")
    image = image.resize((image.width * scale, image.height * scale), Image.Resampling.NEAREST)
    pen = ImageDraw.Draw(image)
    if batch.box is not None:
        for box in batch.box[index][~batch.box[index].isnan().any(-1)].tolist():
            pen.rectangle(
                [side * edge for side, edge in zip((*image.size, *image.size), box, strict=True)], outline="red"
            )
    if batch.centre is not None:
        x, y = (batch.centre[index].numpy() * image.size).tolist()
        pen.line([x - 5, y, x + 5, y], fill="red")
        pen.line([x, y - 5, x, y + 5], fill="red")
    return image


def caption(dataset: Dataset, batch: Batch, index: int, letters: int) -> list[str]:
    """The class of an image, or some of its questions with their answers, in lines of at most `letters`."""
    answer_Q = batch.answer[index]
    if batch.question is None:
        shown = answer_Q[answer_Q >= 0].unique().tolist()
        return [f"{index}: {', '.join(dataset.answers[answer] for answer in shown)}"]
    question_QD = batch.question[index]
    asked = question_QD.any(dim=1).nonzero()[:, 0].tolist()  # the others are padding
    lines = []
    for position in np.unique(np.linspace(0, len(asked) - 1, QUESTIONS).round().astype(int)):
        question_D, answer = question_QD[asked[position]], int(answer_Q[asked[position]])
        answer_text = dataset.answers[answer] if answer >= 0 else "(not known)"
        lines += textwrap.wrap(f"{dataset.to_sentence(question_D)} {answer_text}", letters, subsequent_indent="   ")
    return lines
