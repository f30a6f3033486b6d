"""A feature map as rows, one per position, which is what matrix products take.

B images, C channels, n = H x W positions, counted row by row.
"""

from torch import Tensor

from bcn.errors import BcnError


def rows(map_BCHW: Tensor) -> Tensor:
    """A map as (B, n, C); a view where the map is in channels_last order.

    Planes (C, H, W) are one map for all images: (1, n, C).
    """
    return (map_BCHW if map_BCHW.dim() == 4 else map_BCHW[None]).flatten(2).transpose(1, 2)


def as_map(rows_BnC: Tensor, like_BCHW: Tensor) -> Tensor:
    """Rows as (B, C, H, W) again: a view, in channels_last order."""
    return rows_BnC.transpose(1, 2).view(rows_BnC.shape[0], rows_BnC.shape[2], *like_BCHW.shape[-2:])


def check_map(map_BCHW: Tensor, channels: int) -> None:
    if map_BCHW.dim() != 4 or map_BCHW.shape[1] != channels or 0 in map_BCHW.shape[2:]:
        raise BcnError(
            f"the map has the shape {tuple(map_BCHW.shape)}: accepted is (B, {channels}, H, W), H and W above 0"
        )
