"""Objects asked for by their place.

B images of H x W objects with C channels, Q questions about each.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bcn.layers.pointwise import rows


def at(place_BQ2: Tensor, height: int, width: int) -> Tensor:
    """Which of H x W objects, counted by rows, is at each place (x, y), in units of the map's width and height.

    >>> at(torch.tensor([[[0.0, 0.0], [0.99, 0.0], [0.3, 0.6]]]), 2, 4)
    tensor([[0, 3, 5]])
    """
    x_BQ, y_BQ = place_BQ2.unbind(-1)
    return (y_BQ * height).long() * width + (x_BQ * width).long()


class Look(nn.Module):
    """The object at the place that a question (x, y, kind) names, x and y from 0 to below 1, beside the kind, one-hot.

    >>> Look(5)(torch.rand(2, 24, 16, 16), torch.rand(2, 40, 3)).shape
    torch.Size([2, 40, 29])
    """

    question_dim = 3

    def __init__(self, kinds: int) -> None:
        super().__init__()
        self.kinds = kinds

    def forward(self, map_BCHW: Tensor, question_BQ3: Tensor) -> Tensor:
        object_BQ, kind_BQ = at(question_BQ3[..., :2], *map_BCHW.shape[-2:]), question_BQ3[..., 2]
        object_BQC = rows(map_BCHW).take_along_dim(object_BQ[..., None], 1)
        return torch.cat([object_BQC, F.one_hot(kind_BQ.long(), self.kinds).to(object_BQC)], dim=-1)
