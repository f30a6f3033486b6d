"""A small task for the engine's tests: where is the blob, and which of three is it? Also a command, for torchrun.

`python tests/blobs.py train blobs/plain --scale smoke` is `bcn train` with the data set, models and recipes of this
file. BLOBS_LOG=DIR writes the indices that each rank reads; BLOBS_KILL=N kills rank 1 at its Nth batch, once;
BLOBS_MISSING=RANK lets that rank have no data; BLOBS_TORN=N lets rank 1 refuse its Nth batch, BLOBS_HANG=N
wait for ever before it.
"""

import operator
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

from bcn.data.arrays import ArrayDataset
from bcn.data.dataset import Batch
from bcn.data.registry import DATASETS, Entry
from bcn.errors import BcnError
from bcn.models import registry
from bcn.paper.tables import OTHER_RECIPES
from bcn.training.recipe import Data, Optim, Recipe, Scale

SIDE = 24
SIZES = {"train": 40, "val": 13, "test": 97}


class Blobs(ArrayDataset):
    """Squares, bars or crosses on noise."""

    read = 0

    def batch(self, index: Sequence[int] | np.ndarray) -> Batch:
        if self.split == "train" and len(index) > 1:  # not a look at one image
            self.note(np.asarray(index))
        return super().batch(index)

    def note(self, index: np.ndarray) -> None:
        self.read += 1
        rank, attempt = os.environ.get("RANK", "0"), os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        if folder := os.environ.get("BLOBS_LOG"):
            with open(Path(folder) / f"rank-{rank}.txt", "a") as file:
                file.write(" ".join(map(str, index)) + "\n")
        if (rank, attempt) == ("1", "0") and os.environ.get("BLOBS_KILL") == str(self.read):
            os.kill(os.getpid(), signal.SIGKILL)
        if rank == "1" and os.environ.get("BLOBS_HANG") == str(self.read):
            signal.signal(signal.SIGTERM, signal.SIG_DFL)  # for torchrun to end it at once
            signal.pause()
        if rank == "1" and os.environ.get("BLOBS_TORN") == str(self.read):
            raise BcnError(f"batch {self.read} is torn")


def open_blobs(split: str, *, images: int | None = None) -> Blobs:
    if (rank := os.environ.get("RANK", "0")) == os.environ.get("BLOBS_MISSING"):
        raise BcnError(f"rank {rank} has no blobs")
    images = images or SIZES[split]
    random = np.random.default_rng([images, list(SIZES).index(split)])
    image = random.integers(0, 60, (images, 1, SIDE, SIDE), dtype=np.uint8)
    kind, centre = random.integers(0, 3, images), random.integers(5, SIDE - 5, (images, 2))
    for number, (x, y) in enumerate(centre):
        half_height, half_width = ((3, 3), (1, 4), (4, 1))[kind[number]]
        image[number, 0, y - half_height : y + half_height + 1, x - half_width : x + half_width + 1] = 255
    names = ("square", "lying", "standing")
    return Blobs("blobs", split, image, kind, names, centre=((centre + 0.5) / SIDE).astype(np.float32))


class Plain(nn.Module):
    """A classifier with a centre and without BatchNorm."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 8, 5, 2), nn.ReLU(), nn.Conv2d(8, 8, 3, 2), nn.ReLU(), nn.Flatten())
        self.kind, self.centre = nn.Linear(8 * 16, 3), nn.Linear(8 * 16, 2)

    def forward(self, image_BCHW: Tensor) -> tuple[Tensor, Tensor]:
        features = self.features(image_BCHW)
        return self.kind(features), self.centre(features)


class Normed(Plain):
    """The same with BatchNorm and dropout, whose states and numbers a resume must bring back."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 5, 2),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Conv2d(8, 8, 3, 2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Dropout(0.3),
        )


def plain(scale: Scale) -> Recipe:
    # 40 images in batches of 7 over two ranks: nothing divides.
    optim = Optim(
        "sgd", 0.05, momentum=0.9, weight_decay=1e-4, schedule="warmup-cosine", warmup=0.2, clip_norm=5.0, ema_decay=0.9
    )
    return Recipe("blobs/plain", scale, Data("blobs"), "blobs/plain", optim, batch_size=7, epochs=4, localise=True)


def normed(scale: Scale) -> Recipe:
    optim = Optim("adam", 0.005, milestones=(2, 3), ema_decay=0.9)
    return Recipe("blobs/normed", scale, Data("blobs"), "blobs/normed", optim, batch_size=8, epochs=4, localise=True)


def install(set_item: Callable[[Any, str, Any], None]) -> None:
    """Add all this to the registers: for one test with monkeypatch.setitem, so that no other test meets it."""
    set_item(DATASETS, "blobs", Entry("squares and bars, for tests", "generated", tuple(SIZES), open_blobs))
    for name, model, recipe in (("blobs/plain", Plain, plain), ("blobs/normed", Normed, normed)):
        set_item(registry._ENTRIES, name, registry.Entry(model, (1, SIDE, SIDE)))
        set_item(OTHER_RECIPES, name, recipe)


if __name__ == "__main__":
    from bcn.cli import main

    install(operator.setitem)
    main()
