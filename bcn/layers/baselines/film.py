"""Feature-wise linear modulation (Perez et al., 2018), the baseline of table 4 in which the question modulates a CNN.

B images, Q questions of D numbers about each, R = B Q, C channels, H x W positions; or n objects of width W.
"""

import torch
from torch import Tensor, nn

from bcn.layers.coordinates import planes_like
from bcn.layers.relation import check_questions
from bcn.layers.rows import check_map, rows

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


class FilmObjects(nn.Module):
    """The same over a set: linear layers instead of convolutions, LayerNorm instead of BatchNorm, as objects differ in
    number from image to image.

    >>> FilmObjects(10, 11)(torch.rand(2, 10, 1, 6), torch.rand(2, 20, 11)).shape
    torch.Size([2, 20, 256])
    """

    def __init__(
        self, channels: int, question_dim: int, width: int = 140, *, blocks: int = 4, out_channels: int = 256
    ) -> None:
        super().__init__()
        self.channels, self.question_dim, self.out_channels = channels, question_dim, out_channels
        self.objects = nn.Linear(channels, width)
        self.modulate = nn.Linear(question_dim, 2 * width * blocks)
        self.enter = nn.ModuleList(nn.Linear(width, width) for _ in range(blocks))
        self.linear = nn.ModuleList(nn.Linear(width, width) for _ in range(blocks))
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.last = nn.Linear(width, out_channels)

    def forward(self, map_BCHW: Tensor, question: Tensor, mask_Bn: Tensor | None = None) -> Tensor:
        """The maximum over objects for questions (B, D) or (B, Q, D): (B, K) or (B, Q, K).

        Args:
            mask_Bn: bool, the objects that are there; by default all.
        """
        check_map(map_BCHW, self.channels)
        check_questions(question, map_BCHW.shape[0], self.question_dim)
        question_BQ1D = (question if question.dim() == 3 else question[:, None])[:, :, None]
        hidden = self.objects(rows(map_BCHW))[:, None]  # one for each image before the first modulation
        modulations = self.modulate(question_BQ1D).chunk(len(self.enter), dim=-1)
        for enter, linear, modulation in zip(self.enter, self.linear, modulations, strict=True):
            scale, shift = modulation.chunk(2, dim=-1)
            entered = torch.relu(enter(hidden))
            hidden = entered + torch.relu((1 + scale) * self.norm(linear(entered)) + shift)
        last_BQnK = self.last(hidden)
        if mask_Bn is not None:
            last_BQnK = last_BQnK.masked_fill(~mask_Bn[:, None, :, None], -torch.inf)
        return torch.relu(last_BQnK.amax(dim=2)).view(*question.shape[:-1], self.out_channels)
