"""The batches of an epoch: which images, how augmented and with which questions follows from seed, epoch and step."""

import numpy as np
import torch

from bcn.data.dataset import Batch, Dataset
from bcn.training.forward import prepare
from bcn.training.recipe import Recipe
from bcn.training.stages import Stage
from bcn.training.state import derive_seed


def order_rows(data: Dataset, recipe: Recipe, *, steps: int, epoch: int, seed: int) -> np.ndarray:
    """The rows of a data set in the order of an epoch, as many as its steps take."""
    return np.resize(data.order(epoch, seed=seed), steps * recipe.batch_size)


def read_batches(stage: Stage, recipe: Recipe, rows: np.ndarray, *place: int, pieces: int = 1) -> list[Batch]:
    """Images for a step, on the host: augmented, with the questions that this stage asks, ready for the loss's device.

    Args:
        place: seed, epoch, step in the epoch and rank, which decide what is random.
        pieces: how many batches to make of them, in their order.
    """
    generator, batches = torch.Generator().manual_seed(derive_seed(*place)), []
    for part in np.array_split(rows, min(pieces, len(rows))):
        batch = stage.data[part]
        if recipe.augment:
            batch = stage.data.augment(batch, generator)
        if stage.curriculum:
            batch = stage.data.curriculum(batch) or batch
        batches.append(prepare(batch, stage.loss))
    return batches
