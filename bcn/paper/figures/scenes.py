"""Scenes of clevr-like-v1 as they are rendered, with one question about each."""

import textwrap
from typing import TYPE_CHECKING

from bcn.data.clevr_like.questions import make_questions
from bcn.data.clevr_like.render import render_scene
from bcn.data.clevr_like.scene import make_scene
from bcn.paper.figures.style import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(*, rows: int = 2, columns: int = 4, seed: int = 0) -> "Figure":
    """The first scenes of the split `test`, each with the first question about it and the answer."""
    figure, axes = canvas(rows, columns, size=(2.3 * columns, 2.0 * rows))
    for index, axis in enumerate(axes.flat):
        scene = make_scene(index, split="test", seed=seed)
        axis.imshow(render_scene(scene, width=300, height=200), interpolation="none")
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set_visible(False)
        question = make_questions(scene, seed=seed)[0]
        caption = f"{question['question']} {question['answer']}"
        axis.set_xlabel("\n".join(textwrap.wrap(caption, 46)), fontsize=6.5, labelpad=3)
    return figure
