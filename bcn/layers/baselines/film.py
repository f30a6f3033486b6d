"""Feature-wise linear modulation (Perez et al., 2018), the baseline of table 4 in which the question modulates a CNN.

B images, Q questions of D numbers about each, R = B Q, C channels, H x W positions.
"""

import torch
from torch import Tensor, nn

from bcn.layers.coordinates import planes_like

PLANES = "xy"


def _with_planes(map_BCHW: Tensor) -> Tensor:
    planes = planes_like(map_BCHW, PLANES, "centre")
    return torch.cat([map_BCHW, planes.expand(map_BCHW.shape[0], -1, -1, -1)], dim=1)


class FilmBlock(nn.Module):
    """x + relu(scale * BatchNorm(convolution(x)) + shift) with x = relu(1x1 convolution of [map, planes])."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.enter = nn.Conv2d(channels + len(PLANES), channels, 1)
        self.convolution = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(channels, affine=False)

    def forward(self, map_BCHW: Tensor, scale_RC: Tensor, shift_RC: Tensor) -> Tensor:
        """The map is one for each image before the first modulation, and one for each question after it."""
        entered = torch.relu(self.enter(_with_planes(map_BCHW)))
        normed = self.norm(self.convolution(entered))
        images, questions = map_BCHW.shape[0], scale_RC.shape[0]
        if torch.compiler.is_exporting() or images != questions:
            owner_R = torch.arange(questions, device=map_BCHW.device) // (questions // images)
            entered, normed = entered.index_select(0, owner_R), normed.index_select(0, owner_R)
        modulated: Tensor = scale_RC[:, :, None, None] * normed + shift_RC[:, :, None, None]
        return entered + torch.relu(modulated)


class Film(nn.Module):
    """Blocks whose channels the question scales and shifts, a 1x1 convolution, and the maximum over positions.

    >>> Film(128, 256)(torch.rand(2, 128, 8, 8), torch.rand(2, 20, 256)).shape
    torch.Size([2, 20, 512])
    """

    def __init__(self, channels: int, question_dim: int, *, blocks: int = 4, out_channels: int = 512) -> None:
        super().__init__()
        self.question_dim, self.out_channels = question_dim, out_channels
        self.modulate = nn.Linear(question_dim, 2 * channels * blocks)
        self.blocks = nn.ModuleList(FilmBlock(channels) for _ in range(blocks))
        self.last = nn.Conv2d(channels + len(PLANES), out_channels, 1)

    def forward(self, map_BCHW: Tensor, question: Tensor) -> Tensor:
        for block, modulation in zip(
            self.blocks, self.modulate(question.flatten(0, -2)).chunk(len(self.blocks), dim=1), strict=True
        ):
            scale_RC, shift_RC = modulation.chunk(2, dim=1)
            map_BCHW = block(map_BCHW, 1 + scale_RC, shift_RC)
        hidden_RKHW = torch.relu(self.last(_with_planes(map_BCHW)))
        return hidden_RKHW.amax(dim=(2, 3)).view(*question.shape[:-1], self.out_channels)
