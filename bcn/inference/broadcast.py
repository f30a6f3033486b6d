"""What a BCN broadcasts about an image, recorded in the same forward pass that gives the logits.

B images of C x H x W pixels, K broadcast channels, h x w positions of the feature map that the BCN sees.
"""

from typing import Any, NamedTuple

import numpy as np
from torch import Tensor, nn

from bcn.training.forward import forward


class Pooled(NamedTuple):
    """What `BroadcastConv.pooled` returned for a batch."""

    value_BK: Tensor
    position_BK: Tensor
    carries_BK: Tensor
    """bool: whether a channel carries something about the image"""
    size: tuple[int, int]
    """h and w"""


class Output(NamedTuple):
    """Everything that one forward pass gives."""

    logits: Tensor
    centre_B2: Tensor | None
    """None for models without a localisation head"""
    pooled: Pooled | None
    """None for models without a BCN"""


class Broadcast(NamedTuple):
    """What a BCN broadcasts about one image."""

    value: np.ndarray
    """(K,)"""
    position: np.ndarray
    """(K,) the position in the feature map that each channel's maximum comes from, counted row by row"""
    carries: np.ndarray
    """(K,) bool: without a last ReLU every channel carries something, after one those that are not zero"""
    size: tuple[int, int]
    """h and w"""

    @classmethod
    def of(cls, pooled: Pooled) -> "Broadcast":
        """That of the first image of a batch."""
        value, position, carries = (
            part[0].cpu().numpy() for part in (pooled.value_BK, pooled.position_BK, pooled.carries_BK)
        )
        return cls(value, position, carries, pooled.size)

    def counts(self) -> np.ndarray:
        """(h, w) how many channels each position supplies (section 5.4); those that carry nothing are not counted."""
        return np.bincount(self.position[self.carries], minlength=self.size[0] * self.size[1]).reshape(self.size)

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the position of every channel, -1 for one that carries nothing."""
        rows, columns = self.size
        return {"rows": rows, "columns": columns, "position": np.where(self.carries, self.position, -1).tolist()}


def pool(model: nn.Module, image_BCHW: Tensor) -> Pooled:
    """Run the CNN and the BCN alone, without a question."""
    map_BChw = model.features(image_BCHW)  # type: ignore[operator]
    return _pooled(model.broadcast, map_BChw, *model.broadcast.pooled(map_BChw))  # type: ignore[operator, union-attr]


def _pooled(broadcast: Any, map_BChw: Tensor, value_BK: Tensor, position_BK: Tensor) -> Pooled:
    return Pooled(value_BK, position_BK, broadcast.carries(value_BK), (map_BChw.shape[2], map_BChw.shape[3]))


def forward_with_broadcast(model: nn.Module, image_BCHW: Tensor, question: Tensor | None) -> Output:
    """Run the model once, and keep what its BCN pooled on the way.

    For the time of the pass `model.broadcast.pooled` is wrapped, so one model must not run in two threads at once.
    """
    bcn: Any = getattr(model, "broadcast", None)
    if bcn is None:
        return Output(*forward(model, image_BCHW, question), None)
    pooled, calls = bcn.pooled, list[Pooled]()

    def recorded(map_BChw: Tensor) -> tuple[Tensor, Tensor]:
        value_BK, position_BK = pooled(map_BChw)
        calls.append(_pooled(bcn, map_BChw, value_BK, position_BK))
        return value_BK, position_BK

    bcn.pooled = recorded
    try:
        logits, centre_B2 = forward(model, image_BCHW, question)
    finally:
        del bcn.pooled
    (call,) = calls
    return Output(logits, centre_B2, call)
