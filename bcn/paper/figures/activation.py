"""Figures 4, 7 and 8: where the maxima that a BCN broadcasts lie. The seed selects the images.

B images, C channels, H x W pixels, h x w positions of the map that the BCN sees.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d

from bcn.data.dataset import Dataset
from bcn.errors import BcnError
from bcn.inference.grid import cell_edges
from bcn.paper.figures.style import canvas
from bcn.training.broadcast_probe import active_channels, collect

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KEY = "where the maxima of its broadcast channels lie"
LARGEST = 32
"""cells along the longer side of a drawn map"""


@torch.inference_mode()
def activation_maps(model: nn.Module, dataset: Dataset, image_BCHW: Tensor) -> Tensor:
    """For each position, how many channels of the broadcast vector came from it: (B, h, w).

    Args:
        dataset: channels that do not vary over its images are not counted.
        image_BCHW: preprocessed.
    """
    if getattr(model, "broadcast", None) is None:
        raise BcnError("a model without a BCN has no activation map; choose one with it, such as scaled-mnist/bcn")
    model.eval()
    collected = collect(model, dataset)
    assert collected is not None
    return collected.broadcast.activation_map(
        model.features(image_BCHW),  # type: ignore[operator]
        active_channels(collected.vector_BK),
    )


def choose(dataset: Dataset, count: int, *, seed: int) -> np.ndarray:
    """Different images of a data set, at random."""
    return np.random.default_rng(seed).choice(len(dataset), size=min(count, len(dataset)), replace=False)


def show(above: Any, below: Any, image_CHW: Tensor, count_hw: Tensor) -> None:
    """An image, and below it its map: brighter for more channels, by the square root, so that a single one is seen.

    Positions of a large map are counted together in squares, for the same reason. Both have the image's coordinates.
    """
    from matplotlib.colors import PowerNorm

    side = -(-max(count_hw.shape) // LARGEST)
    cells_hw = avg_pool2d(count_hw[None], side, ceil_mode=True, divisor_override=1)[0]
    (height, width), (h, w) = image_CHW.shape[-2:], count_hw.shape
    y, x = (np.append(edges[:-1:side], edges[-1]) for edges in (cell_edges(height, h), cell_edges(width, w)))
    above.imshow(image_CHW.movedim(0, -1).numpy(), cmap="gray", interpolation="none", extent=(0, width, height, 0))
    below.pcolormesh(x, y, cells_hw.numpy(), cmap="magma", norm=PowerNorm(0.5, vmin=0))
    for axis in (above, below):
        axis.set(xticks=[], yticks=[], xlim=(0, width), ylim=(height, 0), aspect="equal")
        axis.spines[:].set(visible=True, color="#bbbbbb", linewidth=0.6)


def draw(model: nn.Module, dataset: Dataset, *, columns: int = 8, rows: int = 2, seed: int = 0) -> "Figure":
    """Rows of images, each with a row of their activation maps below it, and the number of active channels."""
    image_BCHW = dataset[choose(dataset, rows * columns, seed=seed)].image
    count_Bhw = activation_maps(model, dataset, dataset.preprocessing(image_BCHW))
    channels = model.broadcast.out_channels  # type: ignore[union-attr]
    height, width = image_BCHW.shape[-2:]
    figure, axes = canvas(2 * rows, columns, size=(1.1 * columns, 2.3 * rows * height / width))
    for number, (image_CHW, count_hw) in enumerate(zip(image_BCHW, count_Bhw, strict=True)):
        row, column = divmod(number, columns)
        show(axes[2 * row, column], axes[2 * row + 1, column], image_CHW, count_hw)
        axes[2 * row + 1, column].set_xlabel(f"{count_hw.sum():.0f} of {channels}", fontsize=7, labelpad=2)
    figure.suptitle(f"below each image: {KEY}, and the number of active channels", fontsize=9)
    return figure
