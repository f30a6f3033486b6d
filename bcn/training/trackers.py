"""Watching a run while it trains: its numbers and pictures for TensorBoard, trackio or Weights & Biases.

metrics.jsonl has the same numbers, whether anyone watches or not.
"""

import os
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from PIL import Image
from torch import nn

from bcn.data.dataset import Dataset
from bcn.errors import BcnError, did_you_mean, install_extra
from bcn.training.metrics import Counts

Draw = Callable[[nn.Module, Dataset, Counts], dict[str, Image.Image]]
"""from a model, validation images and what was counted on them to pictures by name"""
PICTURES = 10
"""how often in a run pictures are drawn"""
PROJECT = "bcn"


class Tracker(Protocol):
    """Where the events of a run go. Nothing is written before the first one."""

    def log(self, values: dict[str, float], step: int) -> None: ...

    def show(self, pictures: dict[str, Image.Image], step: int) -> None: ...

    def close(self) -> None: ...


class TensorBoard:
    """Into the run's directory: `tensorboard --logdir runs`."""

    def __init__(self, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.open: Callable[[], Any] = partial(SummaryWriter, folder / "tensorboard")
        self.writer: Any = None

    def log(self, values: dict[str, float], step: int) -> None:
        self.writer = self.writer or self.open()
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)
        self.writer.flush()

    def show(self, pictures: dict[str, Image.Image], step: int) -> None:
        self.writer = self.writer or self.open()
        for name, picture in pictures.items():
            self.writer.add_image(name, np.asarray(picture), step, dataformats="HWC")
        self.writer.flush()

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()


class Hosted:
    """trackio and wandb, which have the same functions. A run that goes on goes on there too, under its name."""

    def __init__(self, module: Any, **options: Any) -> None:
        self.module, self.options = module, options
        self.run: Any = None

    def log(self, values: dict[str, float], step: int) -> None:
        self._send(values, step)

    def show(self, pictures: dict[str, Image.Image], step: int) -> None:
        self._send({name: self.module.Image(picture) for name, picture in pictures.items()}, step)

    def _send(self, values: dict[str, Any], step: int) -> None:
        with redirect_stdout(sys.stderr):  # standard output is for results
            self.run = self.run or self.module.init(project=PROJECT, resume="allow", **self.options)
            self.run.log(values, step=step)

    def close(self) -> None:
        if self.run is not None:
            with redirect_stdout(sys.stderr):
                self.module.finish()


def _trackio(folder: Path) -> Hosted:
    """Into trackio's own directory, TRACKIO_DIR, without a network: `trackio show`."""
    return Hosted(import_module("trackio"), name=folder.name, embed=False)


def _wandb(folder: Path) -> Hosted:
    """Into the run's directory, to be sent later by `wandb sync`; at once with WANDB_MODE=online."""
    wandb = import_module("wandb")
    mode, settings = os.environ.get("WANDB_MODE", "offline"), wandb.Settings(console="off", silent=True)
    return Hosted(wandb, id=folder.name, name=folder.name, dir=folder, mode=mode, settings=settings)


TRACKERS: dict[str, tuple[Callable[[Path], Tracker], str]] = {
    "tensorboard": (TensorBoard, install_extra("tensorboard")),
    "trackio": (_trackio, "pip install trackio matplotlib"),
    "wandb": (_wandb, "pip install wandb matplotlib"),
}
"""how each is opened for a run's directory, and installed"""


@dataclass
class Watcher:
    """Whoever watches a run: a tracker, and what draws the pictures for it; by default nobody."""

    tracker: Tracker | None = None
    draw: Draw = lambda *_: {}

    def write(self, event: dict[str, Any]) -> None:
        """What of a line of metrics.jsonl is drawn as curves."""
        if self.tracker is not None:
            self.tracker.log(numbers_of(event), event["step"])

    def show(self, model: nn.Module, dataset: Dataset, counts: Counts, epoch: int, epochs: int, step: int) -> None:
        """What a model makes of validation images, after some of the epochs, which are counted from 1."""
        if self.tracker is not None and is_drawn(epoch, epochs):
            self.tracker.show(self.draw(model, dataset, counts), step)

    def close(self) -> None:
        if self.tracker is not None:
            self.tracker.close()


def open_watcher(name: str, folder: Path, draw: Draw) -> Watcher:
    """Whoever watches a run; nobody for "none".

    Args:
        folder: the directory of the run.
    """
    if name == "none":
        return Watcher()
    if name not in TRACKERS:
        raise did_you_mean("log", name, [*TRACKERS, "none"])
    opening, installing = TRACKERS[name]
    try:
        import matplotlib  # noqa: F401, for pictures

        return Watcher(opening(folder), draw)
    except ImportError as error:
        raise BcnError(f"--log {name} needs the packages {name} and matplotlib: {installing}") from error


def numbers_of(event: dict[str, Any]) -> dict[str, float]:
    """What of an event is drawn as curves: "epoch/val_loss" and so on.

    >>> numbers_of({"event": "epoch", "epoch": 3, "step": 60, "loss": 0.5, "active_channels": 12})
    {'epoch/loss': 0.5}
    """
    return {f"{event['event']}/{name}": value for name, value in event.items() if isinstance(value, float)}


def is_drawn(epoch: int, epochs: int) -> bool:
    """Whether pictures are drawn after an epoch, counted from 1: `PICTURES` times, the last epoch included.

    >>> [epoch for epoch in range(1, 41) if is_drawn(epoch, 40)]
    [4, 8, 12, 16, 20, 24, 28, 32, 36, 40]
    """
    return (epochs - epoch) % max(1, epochs // PICTURES) == 0
