"""A model's confusion matrix as an image: rows are true answers, columns the answers given."""

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from bcn.errors import BcnError, install_extra
from bcn.io import atomic_write
from bcn.training.metrics import Counts

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_confusion(counts: Counts, answers: tuple[str, ...], path: Path) -> None:
    """Write a PNG: the colour is the share of a row, the number the count; empty rows stay white.

    Args:
        answers: the names of the answers, in the order of their indices.
    """
    count_TA = counts.confusion_KTA.sum(0)
    true = (*answers, "any other")
    if not count_TA[-1].any():
        count_TA, true = count_TA[:-1], answers
    figure = confusion_figure(count_TA, true, answers, f"{counts.correct:,} of {counts.total:,} right")
    with atomic_write(path) as temporary:
        figure.savefig(temporary, format="png", dpi=150)


def confusion_figure(count_TA: Tensor, true: tuple[str, ...], answers: tuple[str, ...], title: str) -> "Figure":
    """The matrix as a figure.

    Args:
        true: names of the rows.
        answers: names of the columns.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise BcnError(f"a confusion matrix needs matplotlib: {install_extra('plot')}") from error
    share_TA = count_TA / count_TA.sum(1, keepdim=True).clamp(min=1)
    side = 1.5 + 0.55 * len(answers)
    figure = Figure(figsize=(side, side), layout="constrained")
    axes = figure.add_subplot()
    axes.imshow(share_TA.numpy(), cmap="Blues", vmin=0, vmax=1)
    for row, column in torch.nonzero(count_TA).tolist():
        colour = "white" if share_TA[row, column] > 0.5 else "black"
        axes.text(column, row, f"{count_TA[row, column]}", ha="center", va="center", color=colour, fontsize=7)
    axes.set_xticks(range(len(answers)), answers, rotation=90)
    axes.set_yticks(range(len(true)), true)
    axes.set_xlabel("answer given")
    axes.set_ylabel("true answer")
    axes.set_title(title, fontsize=10)
    return figure
