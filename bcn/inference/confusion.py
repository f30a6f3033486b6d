"""A model's confusion matrix as an image: rows are true answers, columns the answers given."""

from pathlib import Path

import torch

from bcn.errors import BcnError, install_extra
from bcn.io import atomic_write
from bcn.training.metrics import Counts


def draw_confusion(counts: Counts, answers: tuple[str, ...], path: Path) -> None:
    """Write a PNG: the colour is the share of a row, the number the count; empty rows stay white.

    Args:
        answers: the names of the answers, in the order of their indices.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise BcnError(f"a confusion matrix needs matplotlib: {install_extra('plot')}") from error
    count_TA = counts.confusion_KTA.sum(0)
    true = (*answers, "any other")
    if not count_TA[-1].any():
        count_TA, true = count_TA[:-1], answers
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
    axes.set_title(f"{counts.correct:,} of {counts.total:,} right", fontsize=10)
    with atomic_write(path) as temporary:
        figure.savefig(temporary, format="png", dpi=150)
