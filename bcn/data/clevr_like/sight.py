"""Sight: things asked for by their place, so that a CNN sees them before it is asked about them in words.

Of every fourth cell of a grid, other cells in the next image: is the centre of a thing in it? Of each thing: what are
its size, color, material and shape? A question is three numbers: x and y in units of the image's width and height, and
which of these five is asked.

N images, T most things of an image; B images of a batch, c cells and Q questions about each.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from bcn.data.clevr_like.program import Scene
from bcn.data.clevr_like.scene_files import object_centres, read_scenes, scene_file
from bcn.data.dataset import NO_ANSWER, Batch, Dataset
from bcn.data.vqa.clevr import ATTRIBUTES
from bcn.data.vqa.dataset import QuestionDataset
from bcn.errors import BcnError

KINDS = ("exist", *ATTRIBUTES)
ANSWERS = ("no", "yes", *(value for values in ATTRIBUTES.values() for value in values))
APART = 4
"""columns from one cell that is asked about to the next"""


@dataclass(eq=False)
class SightDataset(Dataset):
    """What `Dataset` asks for, over images whose scenes are known; they stay as they are, for things to be found."""

    seen: QuestionDataset
    """whose images these are"""
    number: np.ndarray
    """(N,) which of its images"""
    place: np.ndarray
    """(N, T, 2) x and y of the things' centres"""
    value: np.ndarray
    """(N, T, 4) what they are like, NO_ANSWER where there is no thing"""
    grid: tuple[int, int]
    """rows and columns"""

    def __post_init__(self) -> None:
        self.name, self.split, self.preprocessing = self.seen.name, "sight", self.seen.preprocessing
        self.answers, self.kinds = ANSWERS, KINDS

    def __len__(self) -> int:
        return len(self.number)

    def __getitem__(self, index: Sequence[int] | np.ndarray) -> Batch:
        index = np.asarray(index, np.intp)
        place_BT2, value_BTA, (rows, columns) = self.place[index], self.value[index], self.grid
        row, fourth = np.divmod(np.arange(rows * columns // APART), columns // APART)
        column_Bc = APART * fourth + (index[:, None] + row) % APART
        cell_Bc2 = np.stack([column_Bc, np.broadcast_to(row, column_Bc.shape)], axis=-1)
        inside_BcT = (cell_Bc2[:, :, None] == np.floor(place_BT2 * (columns, rows))[:, None]).all(-1)
        there_Bc = (inside_BcT & (value_BTA[:, None, :, 0] != NO_ANSWER)).any(-1)
        asked_BT4 = np.broadcast_to(np.arange(1, len(KINDS)), value_BTA.shape)
        kind_BQ = np.concatenate([np.zeros_like(column_Bc), asked_BT4.reshape(len(index), -1)], axis=1)
        place_BQ2 = np.concatenate(
            [(cell_Bc2 + 0.5) / (columns, rows), place_BT2.repeat(value_BTA.shape[2], axis=1)], axis=1
        )
        answer_BQ = np.concatenate([there_Bc, value_BTA.reshape(len(index), -1)], axis=1)
        return Batch(
            image=torch.from_numpy(np.ascontiguousarray(self.seen.image[self.number[index]])),
            answer=torch.from_numpy(answer_BQ),
            question=torch.from_numpy(np.concatenate([place_BQ2, kind_BQ[..., None]], axis=-1)).float(),
            kind=torch.from_numpy(kind_BQ),
        )

    def checksum(self) -> str:
        """Of what is asked; that of the images is in the checksum of their split."""
        digest = hashlib.sha256()
        for array in (self.number, self.place, self.value):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def described(directory: Path, train: QuestionDataset) -> dict[int, Scene]:
    """The scene of each image of a training split, by the image's number."""
    number_of = {Path(file).name: number for number, file in enumerate(train.files)}
    wanted, path = set(np.unique(train.rows[:, 0]).tolist()), scene_file(directory)
    found = {
        number: scene for scene in read_scenes(path) if (number := number_of.get(scene["image_filename"], -1)) in wanted
    }
    if len(found) == len(wanted):
        return found
    raise BcnError(
        f"{path} describes {len(found):,} of the {len(wanted):,} images of {train.split}: get its own, or train with "
        "auxiliary=none"
    )


def open_sight(directory: Path, train: QuestionDataset, grid: tuple[int, int]) -> SightDataset:
    """What is in the images of a training split, as its scenes tell it, asked in cells of such a grid."""
    scenes = described(directory, train)
    most = max(len(scene["objects"]) for scene in scenes.values())
    place, value = np.zeros((len(scenes), most, 2)), np.full((len(scenes), most, len(ATTRIBUTES)), NO_ANSWER)
    for image, number in enumerate(sorted(scenes)):
        things = scenes[number]["objects"]
        place[image, : len(things)] = object_centres(scenes[number])
        value[image, : len(things)] = [[ANSWERS.index(thing[name]) for name in ATTRIBUTES] for thing in things]
    return SightDataset(train, np.array(sorted(scenes)), place, value, grid)
