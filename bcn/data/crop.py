"""Images cut at random out of larger ones: augmentation that moves what is seen."""

import torch
from torch import Tensor


def random_crop(bordered_BCHW: Tensor, border: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Images without a border of so many pixels on each side, each cut out at a place of its own.

    And (B, 2), by how many pixels they moved: to the right and down.
    """
    batch, _, height, width = bordered_BCHW.shape
    top, left = torch.randint(2 * border + 1, (2, batch), generator=generator, device=generator.device).to(
        bordered_BCHW.device
    )
    crops_BCYXHW = bordered_BCHW.unfold(2, height - 2 * border, 1).unfold(3, width - 2 * border, 1)
    crop_BCHW = crops_BCYXHW[torch.arange(batch, device=bordered_BCHW.device), :, top, left]
    return crop_BCHW, border - torch.stack([left, top], dim=1)
