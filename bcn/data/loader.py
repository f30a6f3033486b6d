"""For loops that are not ours: samples joined where nobody has padded them, and images transformed one by one."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.utils.data
from torch import Tensor
from torch.nn.functional import pad
from torch.utils.data import default_collate

from bcn.data.dataset import IGNORE_INDEX, Dataset, Sample

PADDINGS = {"question": 0, "answer": IGNORE_INDEX, "kind": 0}


def collate(samples: Sequence[Sample]) -> dict[str, Any]:
    """A batch of samples whose images have other numbers of questions, and questions other numbers of words.

    A DataLoader of one data set does without it, because samples of one batch are padded alike. Of several data sets
    (`ConcatDataset`) or samples one by one it takes `collate_fn=collate`. The loss ignores what is padded.

    >>> one = {"question": torch.ones(3, 5), "answer": torch.ones(3)}
    >>> other = {"question": torch.ones(2, 7), "answer": torch.ones(2)}
    >>> batch = collate([one, other])
    >>> batch["question"].shape, batch["answer"][1]
    (torch.Size([2, 3, 7]), tensor([   1.,    1., -100.]))
    """
    joined = {}
    for name in samples[0]:
        parts = [sample[name] for sample in samples]
        joined[name] = default_collate(_padded(parts, PADDINGS[name]) if name in PADDINGS else parts)
    return joined


def _padded(parts: list[Tensor], value: int) -> list[Tensor]:
    """Tensors of one shape: the largest of each dimension."""
    sizes = torch.tensor([part.shape for part in parts]).amax(dim=0)
    missing = [(sizes - torch.tensor(part.shape)).tolist() for part in parts]
    return [
        pad(part, [n for more in reversed(of_part) for n in (0, more)], value=value)
        for part, of_part in zip(parts, missing, strict=True)
    ]


class TransformedDataset(torch.utils.data.Dataset[Sample]):
    """A data set whose images a function changes, such as a transform of `torchvision.transforms.v2`.

    Questions and centres stay: mirror or move images only where they do not speak of places.

    >>> from bcn.data.sort_of_clevr import make_sort_of_clevr
    >>> scenes = make_sort_of_clevr("sort-of-clevr-v1", "train", images=5)
    >>> TransformedDataset(scenes, lambda image: image[:, ::3, ::3])[4]["image"].shape
    torch.Size([3, 25, 25])

    Args:
        transform: from an image (C, H, W) of uint8 to what takes its place.
    """

    def __init__(self, dataset: Dataset, transform: Callable[[Tensor], Any]) -> None:
        self.dataset, self.transform = dataset, transform

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Sample:
        return self._transformed(self.dataset[index])

    def __getitems__(self, index: list[int]) -> list[Sample]:
        return [self._transformed(sample) for sample in self.dataset.__getitems__(index)]

    def _transformed(self, sample: Sample) -> Sample:
        return sample | {"image": self.transform(sample["image"])}
