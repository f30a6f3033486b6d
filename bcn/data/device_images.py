"""All images of a data set on a GPU, as bytes: a batch then takes a few indices there, not megabytes."""

from typing import cast
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import Tensor

CHUNK_BYTES = 2**26
"""sent at a time"""
_KEPT: WeakValueDictionary[tuple[int, torch.device], "DeviceImages"] = WeakValueDictionary()


class DeviceImages:
    """Images (N, C, H, W) uint8 on a device, indexed by arrays of the host, as those that they were made from are.

    Args:
        images: stay alive, for other data sets that share them to find them here.
    """

    def __init__(self, images: np.ndarray, device: torch.device) -> None:
        self.source, self.shape = images, images.shape
        self.pixels = torch.empty(images.shape, dtype=torch.uint8, device=device)
        at_once = max(1, CHUNK_BYTES // max(1, images[:1].nbytes))
        for start in range(0, len(images), at_once):
            part = torch.from_numpy(np.array(images[start : start + at_once]))
            self.pixels[start : start + len(part)] = part.to(device)

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, index: np.ndarray) -> Tensor:
        rows = torch.from_numpy(np.asarray(index, np.int64))
        rows = rows.pin_memory() if self.pixels.is_cuda else rows
        return self.pixels.index_select(0, rows.to(self.pixels.device, non_blocking=True))


Images = np.ndarray
"""or `DeviceImages`, which is indexed in the same way"""


def take_images(images: Images, index: np.ndarray) -> Tensor:
    """Some images, where they are."""
    taken = images[index]
    return taken if isinstance(taken, Tensor) else torch.from_numpy(np.ascontiguousarray(taken))


def images_on_device(images: Images, device: torch.device, limit: int) -> Images:
    """The images on a device, if they take at most `limit` bytes there; data sets that share them share these too."""
    if isinstance(images, DeviceImages) or images.nbytes > limit:
        return images
    key = (images.__array_interface__["data"][0], device)
    kept = _KEPT.get(key)
    if kept is None or kept.shape != images.shape:
        kept = _KEPT[key] = DeviceImages(images, device)
    return cast(Images, kept)
