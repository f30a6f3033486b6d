"""Evaluation: counts first, metrics from counts.

B images, Q questions about each, A answers, T = A + 1 true answers, of which the last stands for all that are not in
the model's vocabulary, K kinds of questions.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bcn.data.dataset import OUT_OF_VOCABULARY, Batch, Dataset
from bcn.training.average_precision import Detections, average_precision, read_detections, true_detections
from bcn.training.device import sum_dtype
from bcn.training.distributed import Ranks
from bcn.training.forward import device_of, forward, inputs_of, move_to, prepare
from bcn.training.losses import answer_loss
from bcn.training.prefetch import Prefetch

Z95 = 1.959963984540054
"""the 97.5 % point of the normal distribution"""
SINGLE = {
    "localisation": "localisation error",
    "mean_iou": "mean IoU",
    "average_precision": "AP at half overlap",
}
"""metrics that are one number, as they are shown"""


@dataclass(frozen=True)
class Counts:
    """What an evaluation counted."""

    confusion_KTA: Tensor
    """int64: how often, for a kind of question and a true answer, each answer was given"""
    loss: float
    """the sum of the losses"""
    squared_error: tuple[float, float] | None
    """sums of the squared errors of the centre's x and y; None where no centres were compared"""
    average_precision: float | None = None
    """of boxes that overlap the true ones by half; None where none are to be found"""

    @property
    def correct(self) -> int:
        return int(self.confusion_KTA.diagonal(dim1=1, dim2=2).sum())

    @property
    def total(self) -> int:
        return int(self.confusion_KTA.sum())

    @property
    def mean_loss(self) -> float:
        """Over the questions whose answer is in the model's vocabulary."""
        return self.loss / max(1, int(self.confusion_KTA[:, :-1].sum()))


@torch.inference_mode()
def evaluate(
    model: nn.Module,
    dataset: Dataset,
    *,
    batch_size: int,
    localise: bool = False,
    ranks: Ranks | None = None,
    interrupt: Callable[[], None] = lambda: None,
) -> Counts:
    """Count the answers of a model to every question of a data set.

    Ranks share the images out without padding, and the totals are asserted.

    Args:
        localise: whether centres are compared too.
        interrupt: called before each batch; it may raise to stop.
    """
    ranks = ranks or Ranks()
    kinds, answers = max(1, len(dataset.kinds)), len(dataset.answers)
    cells = kinds * (answers + 1) * answers
    device = device_of(model)
    counts = torch.zeros(cells + 3, dtype=torch.int64, device=device)  # and answers, images, centres
    sums = torch.zeros(3, dtype=sum_dtype(device), device=device)  # loss, x, y
    was_training = model.training
    model.eval()
    mine = ranks.share(np.arange(len(dataset)))
    boxes: list[tuple[Detections, Detections]] = []

    def read(start: int) -> Batch:
        return prepare(dataset[mine[start : start + batch_size]], model)

    with Prefetch(read, stop=len(mine), step=batch_size, ahead=device.type != "cpu") as batches:
        for start in range(0, len(mine), batch_size):
            interrupt()
            batch = move_to(batches(start), device)
            logits, centre_B2 = forward(model, *inputs_of(batch, dataset.preprocessing))
            kind = torch.zeros_like(batch.answer) if batch.kind is None else batch.kind
            true = batch.answer.masked_fill(batch.answer == OUT_OF_VOCABULARY, answers)
            cell = (kind * (answers + 1) + true) * answers + logits.argmax(-1)
            asked = true >= 0  # not the padding of images with fewer questions than others
            # One cell more, for what is not asked: to leave it out, a GPU would have to be asked where it is.
            cell = cell.masked_fill(~asked, cells).flatten()
            counted = counts.new_zeros(cells + 1).index_add_(0, cell, torch.ones_like(cell))
            counts[:-3] += counted[:-1]
            counts[-3] += asked.sum()
            counts[-2] += len(batch.image)
            sums[0] += answer_loss(logits, centre_B2, batch, localise=localise)
            if batch.box is not None and centre_B2 is not None:
                boxes += zip(read_detections(logits, centre_B2, batch.box), true_detections(batch), strict=True)
            if localise and centre_B2 is not None and batch.centre is not None:
                sums[1:] += (centre_B2.to(sums.dtype) - batch.centre.to(sums.dtype)).square().sum(0)
                counts[-1] += len(centre_B2)
    model.train(was_training)
    counts, sums = ranks.sum(counts).cpu(), ranks.sum(sums).cpu()
    assert int(counts[-2]) == len(dataset), f"{counts[-2]} of {len(dataset)} images were evaluated"
    assert counts[:-3].sum() == counts[-3], "not every answer was counted"
    loss, x, y = sums.tolist()
    all_boxes = [pair for part in ranks.gather(boxes) for pair in part]
    return Counts(
        counts[:-3].view(kinds, answers + 1, answers),
        loss,
        (x, y) if counts[-1] else None,
        average_precision(all_boxes) if all_boxes else None,
    )


def wilson(correct: float, total: int) -> tuple[float, float]:
    """The 95 % confidence interval of a proportion (E. B. Wilson, 1927); it stays within 0 and 1, also at 0 and 1.

    Args:
        correct: need not be whole: it may be a mean over seeds.

    >>> tuple(round(bound, 4) for bound in wilson(97, 100))
    (0.9155, 0.9897)
    """
    share, z2 = correct / total, Z95**2
    centre = share + z2 / (2 * total)
    spread = Z95 * math.sqrt(share * (1 - share) / total + z2 / (4 * total**2))
    low, high = (centre - spread) / (1 + z2 / total), (centre + spread) / (1 + z2 / total)
    return 0.0 if correct == 0 else low, 1.0 if correct == total else high


def compute_metrics(counts: Counts, dataset: Dataset) -> dict[str, Any]:
    """The metrics of a record: counts, accuracy and interval of all, of question groups and of kinds; localisation.

    A kind that was never asked has a total of 0, and neither accuracy nor interval.
    Localisation is the root mean square error per coordinate, in units of the image's side.
    """
    parts = {"all": slice(None), **dataset.question_groups}
    parts |= {name: slice(kind, kind + 1) for kind, name in enumerate(dataset.kinds)}
    metrics: dict[str, Any] = {}
    for name, part in parts.items():
        confusion_KTA = counts.confusion_KTA[part]
        correct, total = int(confusion_KTA.diagonal(dim1=1, dim2=2).sum()), int(confusion_KTA.sum())
        metrics[name] = {"correct": correct, "total": total, "accuracy": round(correct / total, 6) if total else None}
        if total:
            metrics[name]["interval"] = [round(bound, 6) for bound in wilson(correct, total)]
    if dataset.dense:
        metrics["mean_iou"] = round(mean_iou(counts.confusion_KTA.sum(dim=0)), 6)
    if counts.average_precision is not None:
        metrics["average_precision"] = round(counts.average_precision, 6)
    if counts.squared_error is not None:
        metrics["localisation"] = round(math.sqrt(sum(counts.squared_error) / (2 * counts.total)), 6)
    return metrics


def headline(metrics: dict[str, Any], dataset: Dataset) -> dict[str, float]:
    """The few metrics of a curve: the accuracy of all and of question groups, and localisation."""
    names = {"accuracy": "all", **{group: group for group in dataset.question_groups}}
    curve = {name: metrics[part]["accuracy"] for name, part in names.items() if metrics[part]["total"]}
    return curve | {name: metrics[name] for name in SINGLE if name in metrics}


def mean_iou(confusion_TA: Tensor) -> float:
    """Mean intersection over union of the classes that occur or were given.

    >>> mean_iou(torch.tensor([[3, 1], [0, 2], [0, 0]]))  # 3 of 4, and 2 of 3
    0.7083333333333333
    """
    shared_A = confusion_TA.diagonal().double()
    given_A, true_A = confusion_TA.sum(dim=0), confusion_TA[: len(shared_A)].sum(dim=1)
    union_A = given_A + true_A - shared_A
    return float((shared_A / union_A)[union_A > 0].mean())
