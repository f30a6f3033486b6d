"""Objects asked for by their place.

B images of H x W objects with C channels, Q questions about each.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bcn.layers.concat import rows


class Look(nn.Module):
    """The object at the place that a question (x, y, kind) names, x and y from 0 to below 1, beside the kind, one-hot.

    >>> Look(5)(torch.rand(2, 24, 16, 16), torch.rand(2, 40, 3)).shape
    torch.Size([2, 40, 29])
    """

    questions = 3

    def __init__(self, kinds: int) -> None:
        super().__init__()
        self.kinds = kinds

    def forward(self, map_BCHW: Tensor, question_BQ3: Tensor) -> Tensor:
        height, width = map_BCHW.shape[-2:]
        x_BQ, y_BQ, kind_BQ = question_BQ3.unbind(-1)
        place_BQ = (y_BQ * height).long() * width + (x_BQ * width).long()
        object_BQC = rows(map_BCHW).take_along_dim(place_BQ[..., None], 1)
        return torch.cat([object_BQC, F.one_hot(kind_BQ.long(), self.kinds).to(object_BQC)], dim=-1)
