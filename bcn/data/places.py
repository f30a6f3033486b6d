"""Questions about places in an image whose objects are known: is an object's centre in this cell; what is at a centre?

A question is three numbers: x and y in units of the image's width and height, and which kind it is: 0 whether an
object's centre is in a cell, a further one for each attribute. Every fourth cell of a grid is asked about, others in
the next image. In which fifth of its cell a centre is, across and down, can be among the attributes: relations need it.

B images of a batch, c cells, T objects with A attributes and Q questions about each.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from bcn.data.dataset import IGNORE_INDEX, Batch, Dataset, Preprocessing

CELL_STRIDE = 4
"""columns from one cell that is asked about to the next"""
PARTS = 5
"""of a cell that a centre may be in, across and down"""
ROUNDING = 1e-4
"""of a cell: a centre on the border of two parts is in the second"""
PART_KINDS = ("column", "row")
PART_ANSWERS = tuple(f"part {part}" for part in range(PARTS))


def locate_in_cell(centre_BT2: np.ndarray, grid: tuple[int, int]) -> np.ndarray:
    """The part of its cell that each centre is in, across and down: (B, T, 2).

    >>> locate_in_cell(np.array([[[0.0, 0.99], [0.3, 0.5]]]), (2, 4)).tolist()
    [[[0, 4], [1, 0]]]
    """
    place_BT2 = _in_cells(centre_BT2, grid)
    within_BT2 = place_BT2 - np.floor(place_BT2) + ROUNDING
    part_BT2: np.ndarray = np.minimum(within_BT2 * PARTS, PARTS - 1).astype(np.int64)
    return part_BT2


def _in_cells(centre_BT2: np.ndarray, grid: tuple[int, int]) -> np.ndarray:
    """x and y in columns and rows, in the precision of a model."""
    rows, columns = grid
    return centre_BT2.astype(np.float32) * np.array((columns, rows), np.float32)


def ask_about_objects(
    image_BCHW: Tensor, centre_BT2: np.ndarray, value_BTA: np.ndarray, index: np.ndarray, grid: tuple[int, int]
) -> Batch:
    """The questions about some images.

    Args:
        value_BTA: the answer to each attribute's question, IGNORE_INDEX where an image has fewer objects; those about
            cells are 0 and 1, no and yes.
        index: of the images, which decide about which cells is asked.
        grid: rows and columns of cells.
    """
    rows, columns = grid
    in_row = -(-columns // CELL_STRIDE)
    row, step = np.divmod(np.arange(rows * in_row), in_row)
    column_Bc = (CELL_STRIDE * step + (index[:, None] + row) % CELL_STRIDE) % columns
    cell_Bc2 = np.stack([column_Bc, np.broadcast_to(row, column_Bc.shape)], axis=-1)
    of_object_BT2 = np.floor(_in_cells(centre_BT2, grid))
    inside_BcT = (cell_Bc2[:, :, None] == of_object_BT2[:, None]).all(-1)
    exists_Bc = (inside_BcT & (value_BTA[:, None, :, 0] != IGNORE_INDEX)).any(-1)
    attribute_BTA = np.broadcast_to(np.arange(1, value_BTA.shape[2] + 1), value_BTA.shape)
    kind_BQ = np.concatenate([np.zeros_like(column_Bc), attribute_BTA.reshape(len(index), -1)], axis=1)
    place_BQ2 = np.concatenate(
        [(cell_Bc2 + 0.5) / (columns, rows), centre_BT2.repeat(value_BTA.shape[2], axis=1)], axis=1
    )
    answer_BQ = np.concatenate([exists_Bc, value_BTA.reshape(len(index), -1)], axis=1)
    return Batch(
        image=image_BCHW,
        answer=torch.from_numpy(answer_BQ),
        question=torch.from_numpy(np.concatenate([place_BQ2, kind_BQ[..., None]], axis=-1)).float(),
        kind=torch.from_numpy(kind_BQ),
    )


class AnnotatedImages(Protocol):
    """Images that are made together with what is known of their objects."""

    name: str
    preprocessing: Preprocessing

    def __len__(self) -> int: ...

    def order(self, epoch: int, *, seed: int) -> np.ndarray: ...

    def checksum(self) -> str: ...

    def label_objects(self, index: np.ndarray, grid: tuple[int, int]) -> tuple[Tensor, np.ndarray, np.ndarray]:
        """Images, centres (B, T, 2) and attributes (B, T, A), as `ask_about_objects` takes them."""


class PlaceDataset(Dataset):
    """Object supervision: questions about the places of objects, and about what is there.

    Args:
        images: a training split.
        grid: rows and columns of the cells that are asked about.
        kinds: "exist", then the attributes.
        answers: "no", "yes", then the values of all attributes.
    """

    def __init__(
        self, images: AnnotatedImages, grid: tuple[int, int], kinds: tuple[str, ...], answers: tuple[str, ...]
    ) -> None:
        self.images, self.grid, self.kinds, self.answers = images, grid, kinds, answers
        self.name, self.split, self.preprocessing = images.name, "objects", images.preprocessing

    def __len__(self) -> int:
        return len(self.images)

    def batch(self, index: Sequence[int] | np.ndarray) -> Batch:
        number = np.asarray(index, np.int64)
        return ask_about_objects(*self.images.label_objects(number, self.grid), number, self.grid)

    def order(self, epoch: int, *, seed: int) -> np.ndarray:
        return self.images.order(epoch, seed=seed)

    def checksum(self) -> str:
        """That of the images: their scenes decide everything."""
        return self.images.checksum()
