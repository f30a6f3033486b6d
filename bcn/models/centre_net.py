"""A detector of objects as points (CenterNet, Zhou et al., 2019), small, with room for a BCN. Not in the paper.

B images, C channels, H x W cells of the map, A classes, T objects of an image.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bcn.layers.baselines.conv_block import Block
from bcn.models.blocks import blocks, channels_last

WIDTH = 64


class CentreNet(nn.Module):
    """For each cell a logit per class, whether an object's centre lies in it, and the box: (B, A + 4, H, W).

    The four are where in the cell the centre lies, from 0 to 1, and width and height in units of a fifth of the image.

    >>> CentreNet(3, nn.Identity())(torch.rand(2, 3, 128, 128)).shape
    torch.Size([2, 7, 32, 32])

    Args:
        middle: between the CNN and the last convolutions, at 64 channels: `nn.Identity()` or a `BroadcastBlock`.
    """

    def __init__(self, num_classes: int, middle: nn.Module) -> None:
        super().__init__()
        self.before = nn.Sequential(*blocks(3, (32, WIDTH)), Block(WIDTH, WIDTH))
        self.middle, self.after = middle, Block(WIDTH, WIDTH)
        self.head = nn.Conv2d(WIDTH, num_classes + 4, 1)
        nn.init.constant_(self.head.bias[:num_classes], -4.0)  # type: ignore[index]  # most cells have no centre

    def forward(self, image_BCHW: Tensor) -> Tensor:
        output_BAHW: Tensor = self.head(self.after(self.middle(self.before(channels_last(image_BCHW)))))
        return output_BAHW


def detection_loss(output_BAHW: Tensor, boxes: Sequence[Tensor], labels: Sequence[Tensor]) -> Tensor:
    """Focal loss of the centres, equation 1 of CenterNet, and L1 loss of the boxes; the mean over objects.

    Args:
        boxes: of each image (T, 4), left, top, right and bottom in units of its sides.
        labels: of each image (T,), the class of each.
    """
    classes, size = output_BAHW.shape[1] - 4, output_BAHW.shape[2:]
    heat_BAHW, loss = torch.zeros_like(output_BAHW[:, :classes]), output_BAHW.new_zeros(())
    row_H1, column_W = torch.arange(size[0])[:, None], torch.arange(size[1])
    for image, (box_T4, label_T) in enumerate(zip(boxes, labels, strict=True)):
        side_T2 = box_T4[:, 2:] - box_T4[:, :2]
        centre_T2 = (box_T4[:, :2] + side_T2 / 2) * torch.tensor([size[1], size[0]])
        cell_T2 = centre_T2.floor().long()
        sigma_T = (side_T2.amin(dim=1) * size[1] / 6).clamp(min=0.6)
        for (column, row), label, sigma in zip(cell_T2.tolist(), label_T.tolist(), sigma_T.tolist(), strict=True):
            bump_HW = torch.exp(-((row_H1 - row) ** 2 + (column_W - column) ** 2) / (2 * sigma**2))
            heat_BAHW[image, label] = heat_BAHW[image, label].maximum(bump_HW)
        given_T4 = output_BAHW[image, classes:, cell_T2[:, 1], cell_T2[:, 0]].T
        loss = loss + F.l1_loss(given_T4, torch.cat([centre_T2 - cell_T2, 5 * side_T2], dim=1), reduction="sum")
    logit_BAHW, centre_BAHW = output_BAHW[:, :classes], heat_BAHW == 1
    share_BAHW = logit_BAHW.sigmoid()
    found = F.logsigmoid(logit_BAHW) * (1 - share_BAHW) ** 2
    refused = F.logsigmoid(-logit_BAHW) * share_BAHW**2 * (1 - heat_BAHW) ** 4
    return (loss - torch.where(centre_BAHW, found, refused).sum()) / max(1, sum(map(len, boxes)))


def decode(output_BAHW: Tensor, most: int = 30) -> list[tuple[Tensor, Tensor, Tensor]]:
    """The boxes (T, 4), classes (T,) and scores (T,) of the most certain centres: cells above their neighbours."""
    classes, (height, width) = output_BAHW.shape[1] - 4, output_BAHW.shape[2:]
    score_BAHW = output_BAHW[:, :classes].sigmoid()
    peaks = score_BAHW * (F.max_pool2d(score_BAHW, 3, 1, 1) == score_BAHW)
    found = []
    for image, peak_AHW in enumerate(peaks):
        score_T, place_T = peak_AHW.flatten().topk(min(most, peak_AHW.numel()))
        label_T, row_T, column_T = torch.unravel_index(place_T, (classes, height, width))
        x_T, y_T, wide_T, high_T = output_BAHW[image, classes:, row_T, column_T]
        centre_T2 = torch.stack([(column_T + x_T) / width, (row_T + y_T) / height], dim=1)
        half_T2 = torch.stack([wide_T, high_T], dim=1).clamp(min=0) / 10
        found.append((torch.cat([centre_T2 - half_T2, centre_T2 + half_T2], dim=1), label_T, score_T))
    return found
