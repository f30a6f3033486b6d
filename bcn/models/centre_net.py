"""A detector of objects as points (CenterNet, Zhou et al., 2019), small, with and without a BCN. Not in the paper.

B images of C channels, H x W = n cells of the map, A classes, T objects found in an image.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bcn.layers.baselines.conv_block import Block
from bcn.layers.broadcast import BroadcastConv
from bcn.layers.rows import rows
from bcn.models.blocks import Broadcasting, blocks, channels_last
from bcn.models.registry import register

IMAGE = (3, 128, 128)
NUM_CLASSES = 3
WIDTH = 64
SIDE_SCALE = 5.0
"""sides of boxes are predicted in units of a fifth of the image"""


class CentreNet(nn.Module):
    """For each cell a logit per class, whether an object's centre lies in it, (B, n, A), and the box, (B, n, 4).

    The four are where in the cell the centre lies, across and down, and width and height times five.

    >>> logits, box = CentreNet(3, nn.Identity())(torch.rand(2, 3, 128, 128))
    >>> logits.shape, box.shape
    (torch.Size([2, 1024, 3]), torch.Size([2, 1024, 4]))

    Args:
        middle: between the CNN and the last convolutions, at 64 channels: `nn.Identity()` or a `BroadcastBlock`.
    """

    def __init__(self, num_classes: int, middle: nn.Module) -> None:
        super().__init__()
        self.num_classes = num_classes
        self.before = nn.Sequential(*blocks(3, (32, WIDTH)), Block(WIDTH, WIDTH))
        self.middle, self.after = middle, Block(WIDTH, WIDTH)
        self.head = nn.Conv2d(WIDTH, num_classes + 4, 1)
        nn.init.constant_(self.head.bias[:num_classes], -4.0)  # type: ignore[index]  # most cells have no centre

    @property
    def broadcast(self) -> BroadcastConv | None:
        return self.middle.broadcast if isinstance(self.middle, Broadcasting) else None

    def features(self, image_BCHW: Tensor) -> Tensor:
        """The map that the BCN sees, where there is one."""
        map_BCHW: Tensor = self.before(channels_last(image_BCHW))
        return map_BCHW

    def forward(self, image_BCHW: Tensor) -> tuple[Tensor, Tensor]:
        output_BnC = rows(self.head(self.after(self.middle(self.features(image_BCHW)))))
        logits_BnA, box_Bn4 = output_BnC.split((self.num_classes, 4), dim=2)
        return logits_BnA, box_Bn4


def detection_loss(logits_BnA: Tensor, box_Bn4: Tensor, label_Bn: Tensor, true_BHW4: Tensor) -> Tensor:
    """Focal loss of the centres, equation 1 of CenterNet, and L1 loss of the boxes, summed.

    Args:
        label_Bn: the class where the centre of an object is, negative where there is none.
        true_BHW4: its box, left, top, right and bottom in units of the image's sides.
    """
    height, width = true_BHW4.shape[1:3]
    image_T, cell_T = (label_Bn >= 0).nonzero(as_tuple=True)
    true_T4, label_T = true_BHW4.flatten(1, 2)[image_T, cell_T], label_Bn[image_T, cell_T]
    row_T, column_T, side_T2 = cell_T // width, cell_T % width, true_T4[:, 2:] - true_T4[:, :2]
    centre_T2 = (true_T4[:, :2] + side_T2 / 2) * side_T2.new_tensor((width, height))
    target_T4 = torch.cat([centre_T2 - torch.stack([column_T, row_T], dim=1), SIDE_SCALE * side_T2], dim=1)
    across, down = torch.arange(width, device=cell_T.device), torch.arange(height, device=cell_T.device)
    square_THW = (down[:, None] - row_T[:, None, None]) ** 2 + (across - column_T[:, None, None]) ** 2
    sigma_T11 = (side_T2.amin(dim=1) * width / 6).clamp(min=0.6)[:, None, None]
    bump_Tn = torch.exp(-square_THW / (2 * sigma_T11**2)).flatten(1)
    batch, _, classes = logits_BnA.shape
    heat_Un = bump_Tn.new_zeros(batch * classes, height * width)
    heat_Un.scatter_reduce_(0, (image_T * classes + label_T)[:, None].expand_as(bump_Tn), bump_Tn, "amax")
    heat_BnA = heat_Un.view(batch, classes, -1).transpose(1, 2)
    share_BnA = logits_BnA.sigmoid()
    found = F.logsigmoid(logits_BnA) * (1 - share_BnA) ** 2
    refused = F.logsigmoid(-logits_BnA) * share_BnA**2 * (1 - heat_BnA) ** 4
    focal = -torch.where(heat_BnA == 1, found, refused).sum()
    return focal + F.l1_loss(box_Bn4[image_T, cell_T], target_T4, reduction="sum")


def decode(
    logits_BnA: Tensor, box_Bn4: Tensor, cells: tuple[int, int], *, most: int = 30
) -> list[tuple[Tensor, Tensor, Tensor]]:
    """The boxes (T, 4), classes (T,) and scores (T,) of the most certain centres: cells above their neighbours."""
    height, width = cells
    score_BAHW = logits_BnA.transpose(1, 2).unflatten(2, cells).sigmoid()
    peaks_BAHW = score_BAHW * (F.max_pool2d(score_BAHW, 3, 1, 1) == score_BAHW)
    found = []
    for peak_AHW, box_n4 in zip(peaks_BAHW, box_Bn4, strict=True):
        score_T, place_T = peak_AHW.flatten().topk(min(most, peak_AHW.numel()))
        label_T, row_T, column_T = torch.unravel_index(place_T, peak_AHW.shape)
        box_T4 = box_n4[row_T * width + column_T]
        corner_T2 = torch.stack([column_T, row_T], dim=1) + box_T4[:, :2]
        centre_T2, half_T2 = (
            corner_T2 / corner_T2.new_tensor((width, height)),
            box_T4[:, 2:].clamp(min=0) / SIDE_SCALE / 2,
        )
        found.append((torch.cat([centre_T2 - half_T2, centre_T2 + half_T2], dim=1), label_T, score_T))
    return found


@register("boxes/centre-net", image=IMAGE)
def centre_net() -> CentreNet:
    return CentreNet(NUM_CLASSES, nn.Identity())


@register("boxes/centre-net-bcn", image=IMAGE)
def centre_net_bcn(sizes: tuple[int, ...] = (64, 64, 128), final_relu: bool = False) -> CentreNet:
    return CentreNet(NUM_CLASSES, Broadcasting(WIDTH, BroadcastConv(WIDTH, sizes, final_relu=final_relu)))
