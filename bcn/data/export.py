"""A data set as one file of plain arrays, for programs that know nothing of this package."""

from pathlib import Path

import numpy as np

from bcn.data.dataset import Dataset
from bcn.io import atomic_write


def write_npz(dataset: Dataset, path: Path) -> Path:
    """Write the arrays of a batch of all images, and the names of the answers and of the kinds of questions."""
    batch = dataset[np.arange(len(dataset))]
    arrays = {name: value.numpy() for name, value in batch._asdict().items() if value is not None}
    with atomic_write(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, answers=np.array(dataset.answers), kinds=np.array(dataset.kinds, dtype=str), **arrays)
    return path
