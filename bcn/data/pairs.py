"""Image-question pairs one by one, drawn independently: how relation networks are trained elsewhere."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from bcn.data.dataset import Batch, Dataset
from bcn.data.random import permutation
from bcn.errors import BcnError


class Pairs(Dataset):
    """A data set of Q questions about each image as one of pairs: pair p is question p % Q about image p // Q.

    An epoch has every pair once, in an order that seed and epoch decide; of a stream, the pairs of its next images.

    >>> from bcn.data.sort_of_clevr import make_sort_of_clevr
    >>> pairs = Pairs(make_sort_of_clevr("sort-of-clevr-v1", "train", images=5))
    >>> len(pairs), pairs[[0, 99]].answer.shape
    (100, torch.Size([2, 1]))
    """

    def __init__(self, images: Dataset) -> None:
        first = images[np.arange(1)]
        if first.question is None or images.vocabulary is not None:  # questions in words: images differ in their number
            raise BcnError(
                f"{images.name} does not ask as many questions about each image as about others: train with "
                "batch_of=images"
            )
        self.images, self.questions = images, first.answer.shape[1]
        self.name, self.split, self.preprocessing = images.name, images.split, images.preprocessing
        self.answers, self.kinds, self.augments = images.answers, images.kinds, images.augments

    def __len__(self) -> int:
        return len(self.images) * self.questions

    def batch(self, index: Sequence[int] | np.ndarray) -> Batch:
        image, question = np.divmod(np.asarray(index, dtype=np.int64), self.questions)
        batch = self.images[image]
        assert batch.question is not None
        assert batch.kind is not None
        rows, which = torch.arange(len(image)), torch.from_numpy(question)
        answer, asked, kind = (part[rows, which][:, None] for part in (batch.answer, batch.question, batch.kind))
        return batch._replace(answer=answer, question=asked, kind=kind)

    def order(self, epoch: int, *, seed: int) -> np.ndarray:
        image = self.images.order(epoch, seed=seed)
        if image.max() >= 2**63 // self.questions:
            raise BcnError(f"seed {seed}: pairs of a stream have seeds below 2**25")
        pair = permutation(len(self), seed=seed, epoch=epoch)
        order: np.ndarray = image[pair // self.questions] * self.questions + pair % self.questions
        return order

    def augment(self, batch: Batch, generator: torch.Generator) -> Batch:
        return self.images.augment(batch, generator)

    def to_sentence(self, question_D: Tensor) -> str:
        return self.images.to_sentence(question_D)

    def on_device(self, device: torch.device, limit: int) -> "Pairs":
        return Pairs(self.images.on_device(device, limit))

    def checksum(self) -> str:
        return self.images.checksum()
