"""The batches of an epoch: which images, how augmented and with which questions follows from seed, epoch and step."""

import numpy as np
import torch
from torch import Tensor

from bcn.data.dataset import IGNORE_INDEX, Batch, Dataset
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
        if stage.questions_per_image:
            batch = draw_questions(batch, stage.questions_per_image, generator)
        batches.append(prepare(batch, stage.loss))
    return batches


def draw_questions(batch: Batch, most: int, generator: torch.Generator) -> Batch:
    """At most so many of the questions about each image, drawn without replacement, and in their order.

    >>> answer = torch.tensor([[3, 1, -100, 4], [1, -100, -100, -100]])
    >>> batch = Batch(image=torch.zeros(2, 3, 8, 8), answer=answer, question=answer[..., None])
    >>> drawn = draw_questions(batch, 2, torch.Generator().manual_seed(0))
    >>> drawn.answer.shape, (drawn.answer >= 0).sum(dim=1).tolist(), torch.equal(drawn.question[..., 0], drawn.answer)
    (torch.Size([2, 2]), [2, 1], True)
    """
    assert batch.question is not None
    key_BQ = torch.rand(batch.answer.shape, generator=generator) + (batch.answer == IGNORE_INDEX)
    drawn_BD = key_BQ.argsort(dim=1)[:, :most].sort(dim=1).values
    rows_B1 = torch.arange(len(drawn_BD))[:, None]

    def draw(of_BQ: Tensor) -> Tensor:
        return of_BQ[rows_B1, drawn_BD]

    auxiliary = batch.auxiliary
    if auxiliary is not None:
        auxiliary = {name: of_B if name == "point" else draw(of_B) for name, of_B in auxiliary.items()}
    kind = None if batch.kind is None else draw(batch.kind)
    return batch._replace(answer=draw(batch.answer), question=draw(batch.question), kind=kind, auxiliary=auxiliary)
