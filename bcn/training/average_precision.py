"""Average precision of a detector: the area under precision over recall, all points (PASCAL VOC from 2010 on).

T boxes, each left, top, right and bottom.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from bcn.data.dataset import Batch
from bcn.models.centre_net import decode


class Detections(NamedTuple):
    box_T4: Tensor
    label_T: Tensor
    score_T: Tensor
    """higher is more certain; of true boxes it has no meaning"""


def box_iou(one_T4: Tensor, other_U4: Tensor) -> Tensor:
    """Intersection over union of every pair of boxes, (T, U).

    >>> box_iou(torch.tensor([[0.0, 0, 2, 2]]), torch.tensor([[1.0, 0, 3, 2], [5.0, 5, 6, 6]]))
    tensor([[0.3333, 0.0000]])
    """
    corner_TU2 = torch.maximum(one_T4[:, None, :2], other_U4[None, :, :2])
    other_corner_TU2 = torch.minimum(one_T4[:, None, 2:], other_U4[None, :, 2:])
    shared_TU = (other_corner_TU2 - corner_TU2).clamp(min=0).prod(dim=2)
    area_T, area_U = ((box[:, 2:] - box[:, :2]).prod(dim=1) for box in (one_T4, other_U4))
    return shared_TU / (area_T[:, None] + area_U - shared_TU)


def read_detections(logits_BnA: Tensor, box_Bn4: Tensor, true_BHW4: Tensor) -> list[Detections]:
    """What a detector finds in each image, with as many cells as there are of the true boxes."""
    _, height, width, _ = true_BHW4.shape
    found = decode(logits_BnA.float().cpu(), box_Bn4.float().cpu(), (height, width))
    return [Detections(*boxes) for boxes in found]


def true_detections(batch: Batch) -> list[Detections]:
    """The boxes of each image of a batch."""
    assert batch.box is not None
    there_Bn = (batch.answer >= 0).cpu()
    parts = zip(batch.box.flatten(1, 2).cpu(), batch.answer.cpu(), there_Bn, strict=True)
    return [
        Detections(box_n4[there_n], label_n[there_n], there_n[there_n].float()) for box_n4, label_n, there_n in parts
    ]


def average_precision(images: Sequence[tuple[Detections, Detections]], *, iou: float = 0.5) -> float:
    """The mean over classes of the area under precision over recall; image by image, given and true boxes.

    The more certain first, a given box finds the true one of its class that it covers best, if that is by `iou` and no
    other has found it; else it is wrong.
    """
    labels = torch.cat([true.label_T for _, true in images]).unique().tolist()
    return sum(_of_class(images, label, iou) for label in labels) / len(labels)


def _of_class(images: Sequence[tuple[Detections, Detections]], label: int, iou: float) -> float:
    scores, hits, total = [], [], 0
    for guess, truth in images:
        box_U4 = truth.box_T4[truth.label_T == label]
        total, taken = total + len(box_U4), torch.zeros(len(box_U4), dtype=torch.bool)
        mine = (guess.label_T == label).nonzero()[:, 0]
        for number in mine[guess.score_T[mine].argsort(descending=True, stable=True)].tolist():
            overlap_U = box_iou(guess.box_T4[number : number + 1], box_U4)[0].masked_fill(taken, -1.0)
            best = int(overlap_U.argmax()) if len(box_U4) else -1
            hit = best >= 0 and bool(overlap_U[best] >= iou)
            if hit:
                taken[best] = True
            scores.append(float(guess.score_T[number]))
            hits.append(hit)
    if not scores:
        return 0.0
    found = torch.tensor(hits)[torch.tensor(scores).argsort(descending=True, stable=True)].cumsum(0).double()
    precision, recall = found / torch.arange(1, len(hits) + 1), found / total
    best_from_here = precision.flip(0).cummax(0).values.flip(0)
    gained = recall.diff(prepend=recall.new_zeros(1))
    return float((gained * best_from_here).sum())
