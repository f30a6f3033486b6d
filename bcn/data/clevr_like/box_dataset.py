"""clevr-boxes-v1: images of CLEVR-like objects for detection, rendered once and cached.

An image is divided into 32 x 32 cells. The cell that holds the centre of an object's box has the object's shape as its
answer and the box; other cells have none. Of two objects with their centres in one cell, the first is kept.

N images, T most objects of an image, B images of a batch of H x W = n cells.
"""

import hashlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch

from bcn.data.arrays import split_range
from bcn.data.cache import cache_directory, open_cache, write_array
from bcn.data.clevr_like.boxes import LABELS, visible_boxes
from bcn.data.clevr_like.program import Scene
from bcn.data.clevr_like.render import render_scene
from bcn.data.clevr_like.rules import CLEVR_RULES
from bcn.data.clevr_like.scene import make_scene
from bcn.data.dataset import IGNORE_INDEX, Batch, Dataset
from bcn.data.vqa.dataset import CLEVR_PREPROCESSING

NAME = "clevr-boxes-v1"
CELLS = 32, 32
"""rows and columns"""
SIZE = 128
SPLITS = {"train": ("train", 0, 6000), "val": ("val", 0, 500), "test": ("test", 0, 1000)}
MOST = CLEVR_RULES.objects[1]


class BoxDataset(Dataset):
    """Images with the boxes of their objects, cell by cell.

    Args:
        image: (N, 3, 128, 128) uint8.
        box: (N, T, 4) left, top, right and bottom, in units of the image's width and height.
        label: (N, T) index in LABELS, IGNORE_INDEX where an image has fewer.
    """

    name, kinds, answers = NAME, (), LABELS
    preprocessing = CLEVR_PREPROCESSING

    def __init__(self, split: str, image: np.ndarray, box: np.ndarray, label: np.ndarray) -> None:
        self.split, self.image, self.box, self.label = split, image, box, label

    def __len__(self) -> int:
        return len(self.image)

    def batch(self, index: Sequence[int] | np.ndarray) -> Batch:
        index = np.asarray(index, np.intp)
        box_BT4, label_BT = self.box[index], self.label[index]
        centre_BT2 = (box_BT4[..., :2] + box_BT4[..., 2:]) / 2
        rows, columns = CELLS
        column_BT, row_BT = np.moveaxis(np.nan_to_num(centre_BT2 * (columns, rows)).astype(np.int64), -1, 0)
        answer_Bn = np.full((len(index), rows * columns), IGNORE_INDEX)
        box_BHW4 = np.full((len(index), rows, columns, 4), np.nan, np.float32)
        image, number = np.nonzero(label_BT != IGNORE_INDEX)
        image, number = image[::-1], number[::-1]  # of two in one cell the first is written last
        row, column = row_BT[image, number], column_BT[image, number]
        answer_Bn[image, row * columns + column] = label_BT[image, number]
        box_BHW4[image, row, column] = box_BT4[image, number]
        pixels = torch.from_numpy(np.ascontiguousarray(self.image[index]))
        return Batch(pixels, torch.from_numpy(answer_Bn), box=torch.from_numpy(box_BHW4))

    def checksum(self) -> str:
        """SHA-256 of boxes and labels; pixels may differ in their last bit between machines."""
        return hashlib.sha256(self.box.astype("<f4").tobytes() + self.label.astype("<i8").tobytes()).hexdigest()


def make_clevr_boxes(split: str, *, images: int | None = None, seed: int = 0) -> BoxDataset:
    """A split, made once and cached; the first few `images` of one that is not cached are made in memory."""
    part, start, stop = split_range(NAME, split, SPLITS, images)
    kept = f"{part}-seed{seed}"
    if images is None or cache_directory(NAME, kept).exists():
        arrays = open_cache(NAME, kept, partial(_write, part, seed))
        return BoxDataset(split, *(arrays[stem][start:stop] for stem in ("image", "box", "label")))
    scenes = [make_scene(index, split=part, seed=seed) for index in range(stop)]
    return BoxDataset(split, np.stack([_render(scene) for scene in scenes]), *label_boxes(scenes))


def label_boxes(scenes: Sequence[Scene]) -> tuple[np.ndarray, np.ndarray]:
    """Boxes and labels of scenes, as `BoxDataset` takes them."""
    box_NT4, label_NT = np.full((len(scenes), MOST, 4), np.nan, np.float32), np.full((len(scenes), MOST), IGNORE_INDEX)
    for number, scene in enumerate(scenes):
        boxes = visible_boxes(scene)
        box_NT4[number, : len(boxes.box)], label_NT[number, : len(boxes.label)] = boxes
    return box_NT4, label_NT


def _render(scene: Scene) -> np.ndarray:
    return np.ascontiguousarray(render_scene(scene, width=SIZE, height=SIZE).transpose(2, 0, 1))


def _write(part: str, seed: int, directory: Path) -> None:
    _, _, count = SPLITS[part]
    scenes = [make_scene(index, split=part, seed=seed) for index in range(count)]
    images = (_render(scene)[None] for scene in scenes)
    write_array(directory / "image.npy", images, shape=(count, 3, SIZE, SIZE), dtype=np.dtype(np.uint8))
    for stem, array in zip(("box", "label"), label_boxes(scenes), strict=True):
        np.save(directory / f"{stem}.npy", array)
