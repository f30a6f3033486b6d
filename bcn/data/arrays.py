"""A data set that is a few arrays in memory or on disk: images, their classes, and where known their centres.

N images in the set, B in a batch, C channels, H x W pixels.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch

from bcn.data.dataset import Batch, Dataset, Preprocessing
from bcn.data.device_images import Images, images_on_device, take_images
from bcn.errors import BcnError
from bcn.io import atomic_write


@dataclass(eq=False)
class ArrayDataset(Dataset):
    """What `Dataset` asks for, over arrays; memory-mapped arrays are read as far as they are indexed.

    >>> images, classes = np.zeros((5, 1, 8, 8), np.uint8), np.array([0, 1, 0, 1, 1])
    >>> dataset = ArrayDataset("blank-v1", "test", images, classes, ("no", "yes"))
    >>> dataset[[4, 0]].answer
    tensor([1, 0])
    """

    name: str
    split: str
    image: Images
    """(N, C, H, W) uint8"""
    answer: np.ndarray
    """(N,) index of the class"""
    answers: tuple[str, ...]
    centre: np.ndarray | None = None
    """(N, 2) x and y of the centre from the top left corner, in units of the image's width and height"""
    preprocessing: Preprocessing = field(default_factory=Preprocessing)
    kinds: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.answer)

    def batch(self, index: Sequence[int] | np.ndarray) -> Batch:
        index = np.asarray(index, dtype=np.intp)
        return Batch(
            image=take_images(self.image, index),
            answer=torch.from_numpy(self.answer[index].astype(np.int64)),
            centre=None if self.centre is None else torch.from_numpy(self.centre[index].astype(np.float32)),
        )

    def on_device(self, device: torch.device, limit: int) -> "ArrayDataset":
        return replace(self, image=images_on_device(self.image, device, limit))

    def checksum(self) -> str:
        digest = hashlib.sha256()
        for start in range(0, len(self), 1024):
            digest.update(np.ascontiguousarray(self.image[start : start + 1024]).data)
        digest.update(self.answer.astype("<i8").tobytes())
        if self.centre is not None:
            digest.update(self.centre.astype("<f4").tobytes())
        return digest.hexdigest()


def split_range(
    name: str, split: str, splits: dict[str, tuple[str, int, int]], images: int | None
) -> tuple[str, int, int]:
    """The original file that holds the split, the split's first image in it and the one after its last."""
    if split not in splits:
        raise BcnError(f"{name} has no split {split!r}: accepted are {', '.join(splits)}")
    part, start, stop = splits[split]
    if images is None:
        return part, start, stop
    if not 1 <= images <= stop - start:
        raise BcnError(
            f"{images} images were asked of {name} {split}: it has {stop - start:,}, give 1 to {stop - start}"
        )
    return part, start, start + images


def write_npz(dataset: Dataset, path: Path) -> Path:
    """Write a whole data set as plain arrays, with the names of its answers and kinds of questions, for other programs.

    The arrays are the fields of a `Batch` of all images.
    """
    batch = dataset[np.arange(len(dataset))]
    arrays = {name: value.numpy() for name, value in batch._asdict().items() if value is not None}
    with atomic_write(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, answers=np.array(dataset.answers), kinds=np.array(dataset.kinds, dtype=str), **arrays)
    return path
