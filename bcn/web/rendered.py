"""CLEVR-like scenes of the page: rendered, with questions and their true answers."""

import base64
import io
from typing import Any

from PIL import Image

from bcn.data.clevr_like.grammars import find_grammar
from bcn.data.clevr_like.render import render_scene
from bcn.data.clevr_like.scene import make_scene

SIZE = (240, 160)
"""width and height: CLEVR's aspect ratio"""


def rendered_scene(seed: int, grammar: str) -> dict[str, Any]:
    """The image as base64 of a PNG file, and questions of a data set's grammar with their answers."""
    scene, buffer = make_scene(seed, split="val"), io.BytesIO()
    questions = [{key: entry[key] for key in ("question", "answer")} for entry in find_grammar(grammar)(scene)]
    Image.fromarray(render_scene(scene, width=SIZE[0], height=SIZE[1])).save(buffer, "PNG")
    return {"image": base64.b64encode(buffer.getvalue()).decode(), "questions": questions}
