"""Pictures of the page that come with questions and their true answers: CLEVR-like scenes, drawn shapes and letters."""

import base64
import io
from typing import Any

from PIL import Image

from bcn.data.clevr_like.grammars import GRAMMARS, find_grammar
from bcn.data.clevr_like.render import render_scene
from bcn.data.clevr_like.scene import make_scene
from bcn.data.drawn import make_drawn
from bcn.data.drawn.dataset import NAME as DRAWN
from bcn.data.vqa.clevr import CLEVR_LIKE
from bcn.inference.reasoner import Reasoner

SIZE = (240, 160)
"""width and height of a rendered scene: CLEVR's aspect ratio"""


def pictures_for(reasoner: Reasoner) -> str:
    """The data set whose pictures suit a model; where it was trained on others, those that its family began with."""
    data = str(reasoner.description["data"])
    if data == DRAWN or data in GRAMMARS:
        return data
    return DRAWN if reasoner.family == DRAWN.split("-")[0] else CLEVR_LIKE


def make_picture(seed: int, data: str) -> dict[str, Any]:
    """The image as base64 of a PNG file, and questions with their answers.

    Args:
        data: what `pictures_for` gives.
    """
    if data == DRAWN:
        (sample,) = make_drawn("val").samples([seed])
        asked = [{"question": question.text, "answer": question.answer} for question in sample.questions]
        image = Image.fromarray(sample.image.transpose(1, 2, 0))
    else:
        scene = make_scene(seed, split="val")
        asked = [{key: entry[key] for key in ("question", "answer")} for entry in find_grammar(data)(scene)]
        image = Image.fromarray(render_scene(scene, width=SIZE[0], height=SIZE[1]))
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return {"image": base64.b64encode(buffer.getvalue()).decode(), "questions": asked}
