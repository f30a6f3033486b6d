"""Original CLEVR images above our renderings of the same scenes."""

from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from bcn.data.clevr_like.render import render_scene
from bcn.data.clevr_like.transfer import find_originals
from bcn.data.images import read_image
from bcn.paper.figures.style import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 180, 120


def draw(*, columns: int = 5, rows: int = 2) -> "Figure":
    """The first images of the split val, each above our rendering of its scene, with the mean error."""
    figure, axes = canvas(2 * rows, columns, size=(1.75 * columns, 2.45 * rows))
    originals = list(find_originals().items())[: rows * columns]
    for number, (path, scene) in enumerate(originals):
        row, column = divmod(number, columns)
        original = np.asarray(read_image(path).convert("RGB").resize((WIDTH, HEIGHT), Image.Resampling.BOX))
        ours = render_scene(scene, width=WIDTH, height=HEIGHT)
        for place, name, picture in ((0, "original", original), (1, "ours", ours)):
            axis = axes[2 * row + place, column]
            axis.imshow(picture, interpolation="none")
            axis.set_ylabel("" if column else name)
        error = np.abs(ours.astype(float) - original).mean()
        axis.set_xlabel(f"mean error {error:.1f} of 255", fontsize=7, labelpad=3)
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set_visible(False)
    return figure
