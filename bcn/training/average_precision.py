"""Average precision of a detector: the area under precision over recall, all points (PASCAL VOC from 2010 on).

T boxes, each left, top, right and bottom.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor


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


def average_precision(given: Sequence[Detections], true: Sequence[Detections], *, iou: float = 0.5) -> float:
    """The mean over classes of the area under precision over recall; image by image, given and true boxes.

    The more certain first, a given box finds the true one of its class that it covers best, if that is by `iou` and no
    other has found it; else it is wrong.
    """
    labels = torch.cat([boxes.label_T for boxes in true]).unique().tolist()
    return sum(_of_class(given, true, label, iou) for label in labels) / len(labels)


def _of_class(given: Sequence[Detections], true: Sequence[Detections], label: int, iou: float) -> float:
    scores, hits, total = [], [], 0
    for guess, truth in zip(given, true, strict=True):
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
