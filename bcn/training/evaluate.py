"""Evaluation: counts first, figures from counts.

B images, Q questions about each, A answers, T = A + 1 true answers, of which the last stands for all that the model
lacks, K kinds of questions, C x H x W pixels.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bcn.data.dataset import LACKED, NO_ANSWER, Batch, Dataset
from bcn.data.sort_of_clevr.questions import KINDS
from bcn.data.vqa.clevr import FAMILIES
from bcn.data.vqa.clevr import KINDS as CLEVR_KINDS
from bcn.errors import BcnError
from bcn.training.distributed import Ranks

GROUPS: dict[tuple[str, ...], dict[str, slice]] = {
    KINDS: {"non_relational": slice(0, 3), "relational": slice(3, 6)},
    CLEVR_KINDS: {
        family: slice(CLEVR_KINDS.index(kinds[0]), CLEVR_KINDS.index(kinds[-1]) + 1)
        for family, kinds in FAMILIES.items()
    },
}
"""kinds of questions that are also reported together"""
MEANT, MARGIN = 3.0, 0.3
"""in pointing: the weight of what is meant, which is rare, and how far below 0 the rest is to be"""
Z95 = 1.959963984540054
"""the 97.5 % point of the normal distribution"""


@dataclass(frozen=True)
class Tally:
    """What an evaluation counted."""

    confusion_KTA: Tensor
    """int64: how often, for a kind of question and a true answer, each answer was given"""
    loss: float
    """the sum of the losses"""
    squared: tuple[float, float] | None
    """sums of the squared errors of the centre's x and y; None where no centres were compared"""

    @property
    def correct(self) -> int:
        return int(self.confusion_KTA.diagonal(dim1=1, dim2=2).sum())

    @property
    def total(self) -> int:
        return int(self.confusion_KTA.sum())

    @property
    def mean_loss(self) -> float:
        """Over the questions whose answer the model has."""
        return self.loss / max(1, int(self.confusion_KTA[:, :-1].sum()))


def move(batch: Batch, device: torch.device) -> Batch:
    """The batch on another device."""
    moved = {
        name: tensor.to(device, non_blocking=True) for name, tensor in batch._asdict().items() if tensor is not None
    }
    return batch._replace(**moved)


def ask(model: nn.Module, image_BCHW: Tensor, question: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """A model's logits, and the centre where it gives one."""
    output = model(image_BCHW) if question is None else model(image_BCHW, question)
    return output if isinstance(output, tuple) else (output, None)


def loss_sum(logits: Tensor, centre_B2: Tensor | None, batch: Batch, *, localise: bool) -> Tensor:
    """The cross-entropy of every answer, plus with equal weight the mean square error of every centre, summed."""
    answer = batch.answer.masked_fill(batch.answer == LACKED, NO_ANSWER)
    loss = F.cross_entropy(logits.flatten(0, -2), answer.flatten(), reduction="sum")
    if centre_B2 is None:
        return loss
    if not localise or batch.centre is None:
        # A centre that nobody asks for takes part in the graph, so that no parameter is without a gradient.
        return loss + 0 * centre_B2.sum()
    return loss + F.mse_loss(centre_B2, batch.centre, reduction="sum") / 2


def pointing_sum(pointed_BQTcM: Tensor, object_BT: Tensor, batch: Batch) -> Tensor:
    """How far pointing is from 1 for what is meant, and above silence for the rest: squared, summed over ways.

    For every question it is the mean over points, and all questions are summed. Of points in one object, what is
    meant at one of them is meant.
    """
    assert batch.point is not None
    assert batch.meant is not None
    there_BT = ~batch.point.isnan().any(-1)
    same_BTT = (object_BT[:, :, None] == object_BT[:, None]) & there_BT[:, None]
    meant_BQT1M = torch.einsum("bts,bqsm->bqtm", same_BTT.to(batch.meant), batch.meant).clamp(max=1)[..., None, :]
    short, loud = (1 - pointed_BQTcM).square(), F.relu(pointed_BQTcM + MARGIN).square()
    loss_BQT = (MEANT * meant_BQT1M * short + (1 - meant_BQT1M) * loud).mean(-2).sum(-1)
    mean_BQ = (loss_BQT * there_BT[:, None]).sum(-1) / there_BT.sum(-1, keepdim=True).clamp(min=1)
    return mean_BQ[batch.answer >= 0].sum()


@torch.inference_mode()
def evaluate(
    model: nn.Module,
    dataset: Dataset,
    *,
    batch_size: int,
    localise: bool = False,
    ranks: Ranks | None = None,
    interrupt: Callable[[], None] = lambda: None,
) -> Tally:
    """Ask everything that the data set asks. Ranks share it out without padding, and the totals are proven."""
    ranks = ranks or Ranks()
    kinds, answers = max(1, len(dataset.kinds)), len(dataset.answers)
    cells = kinds * (answers + 1) * answers
    counts = torch.zeros(cells + 3, dtype=torch.int64, device=ranks.device)  # and answers, images, centres
    sums = torch.zeros(3, dtype=torch.float64, device=ranks.device)  # loss, x, y
    was_training = model.training
    model.eval()
    mine = ranks.share(np.arange(len(dataset)))
    for start in range(0, len(mine), batch_size):
        interrupt()
        part = move(dataset[mine[start : start + batch_size]], ranks.device)
        logits, centre_B2 = ask(model, dataset.preprocessing(part.image), part.question)
        kind = torch.zeros_like(part.answer) if part.kind is None else part.kind
        true = part.answer.masked_fill(part.answer == LACKED, answers)
        cell = (kind * (answers + 1) + true) * answers + logits.argmax(-1)
        asked = true >= 0  # not the padding of images with fewer questions than others
        counts[:-3] += torch.bincount(cell[asked], minlength=cells)
        counts[-3] += asked.sum()
        counts[-2] += len(part.image)
        sums[0] += loss_sum(logits, centre_B2, part, localise=localise)
        if localise and centre_B2 is not None and part.centre is not None:
            sums[1:] += (centre_B2.double() - part.centre.double()).square().sum(0)
            counts[-1] += len(centre_B2)
    model.train(was_training)
    counts, sums = ranks.sum(counts).cpu(), ranks.sum(sums).cpu()
    assert int(counts[-2]) == len(dataset), f"{counts[-2]} of {len(dataset)} images were evaluated"
    assert counts[:-3].sum() == counts[-3], "not every answer was counted"
    loss, x, y = sums.tolist()
    return Tally(counts[:-3].view(kinds, answers + 1, answers), loss, (x, y) if counts[-1] else None)


def wilson(correct: float, total: int) -> tuple[float, float]:
    """The 95 % interval of a share (E. B. Wilson, 1927): it stays within 0 and 1, also at 0 and 1.

    `correct` need not be whole: it may be a mean over seeds.

    >>> tuple(round(bound, 4) for bound in wilson(97, 100))
    (0.9155, 0.9897)
    """
    share, z2 = correct / total, Z95**2
    centre = share + z2 / (2 * total)
    spread = Z95 * math.sqrt(share * (1 - share) / total + z2 / (4 * total**2))
    low, high = (centre - spread) / (1 + z2 / total), (centre + spread) / (1 + z2 / total)
    return 0.0 if correct == 0 else low, 1.0 if correct == total else high


def metrics(tally: Tally, dataset: Dataset) -> dict[str, Any]:
    """The figures of a record: counts and intervals of all, of each kind and of groups of kinds, and localisation.

    A kind that was never asked has a total of 0, and no accuracy and interval.
    Localisation is the root mean square error per coordinate, in units of the image's side.
    """
    parts = {"all": slice(None), **GROUPS.get(dataset.kinds, {})}
    parts |= {name: slice(kind, kind + 1) for kind, name in enumerate(dataset.kinds)}
    figures: dict[str, Any] = {}
    for name, part in parts.items():
        confusion_KTA = tally.confusion_KTA[part]
        correct, total = int(confusion_KTA.diagonal(dim1=1, dim2=2).sum()), int(confusion_KTA.sum())
        figures[name] = {"correct": correct, "total": total, "accuracy": round(correct / total, 6) if total else None}
        if total:
            figures[name]["interval"] = [round(bound, 6) for bound in wilson(correct, total)]
    if tally.squared is not None:
        images = tally.total
        figures["localisation"] = round(math.sqrt(sum(tally.squared) / (2 * images)), 6)
    return figures


def check_fit(model: nn.Module, dataset: Dataset, name: str) -> None:
    """Refuse a model that cannot answer this data set, with one sentence instead of a trace from within a layer."""
    batch = dataset[[0]]
    was_training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            device = next(model.parameters()).device
            batch = move(batch, device)
            logits, _ = ask(model, dataset.preprocessing(batch.image), batch.question)
    except (RuntimeError, TypeError, ValueError) as error:
        shapes = f"images {tuple(batch.image.shape[1:])}"
        shapes += "" if batch.question is None else f" and questions {tuple(batch.question.shape[1:])}"
        reason = str(error).strip().split("\n")[0]
        raise BcnError(f"{name} cannot read {dataset.name} with {shapes}: {reason}; choose another model") from error
    finally:
        model.train(was_training)
    expected = (*batch.answer.shape, len(dataset.answers))
    if tuple(logits.shape) != expected:
        raise BcnError(
            f"{name} answers {dataset.name} with shape {tuple(logits.shape)} instead of {expected}; choose another one"
        )
