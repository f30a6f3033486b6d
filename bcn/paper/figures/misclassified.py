"""Figure 6: MoreScaled digits rotated by up to 45 degrees, their activation maps, and the errors."""

from typing import TYPE_CHECKING

import torch
from torch import nn

from bcn.data.dataset import Dataset
from bcn.paper.figures.activation import KEY, activation_maps, choose, show
from bcn.paper.figures.style import canvas
from bcn.training.forward import forward

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@torch.inference_mode()
def draw(model: nn.Module, dataset: Dataset, *, columns: int = 8, rows: int = 3, seed: int = 0) -> "Figure":
    """Randomly chosen digits; a red frame and "target → prediction" where the model is wrong."""
    batch = dataset[choose(dataset, rows * columns, seed=seed)]
    image_BCHW = dataset.preprocessing(batch.image)
    count_Bhw = activation_maps(model, dataset, image_BCHW)
    predicted_B = forward(model, image_BCHW)[0].argmax(-1)
    figure, axes = canvas(2 * rows, columns, size=(1.15 * columns, 2.0 * rows))
    for number, (digit, answer, guess) in enumerate(zip(batch.image, batch.answer, predicted_B, strict=True)):
        row, column = divmod(number, columns)
        above, below = axes[2 * row, column], axes[2 * row + 1, column]
        show(above, below, digit, count_Bhw[number])
        if answer != guess:
            for axis in (above, below):
                axis.spines[:].set(color="red", linewidth=2)
            below.set_xlabel(f"{dataset.answers[answer]} → {dataset.answers[guess]}", color="red", labelpad=2)
    wrong = int((predicted_B != batch.answer).sum())
    figure.suptitle(
        f"{wrong} of {len(predicted_B)} misclassified (red: target → prediction); below each: {KEY}", fontsize=9
    )
    return figure
