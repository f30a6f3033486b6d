"""What a BCN broadcasts about an image, recorded in the same forward pass that gives the logits.

A model that broadcasts after asking has a vector for each question; its last round's are shown, all of them together.

B images of C x H x W pixels, K broadcast channels, h x w positions of the feature map that the BCN sees; Q questions, n
objects and W channels of each vector of a model that broadcasts after asking.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from bcn.inference.grid import cell_edges
from bcn.layers.rounds import RoundsRelation, find_rounds
from bcn.training.forward import forward


class Pooled(NamedTuple):
    """What `pooled` of a `BroadcastConv`, or of the last round of a `RoundsRelation`, gave for a batch."""

    map_BChw: Tensor
    value_BK: Tensor
    position_BK: Tensor
    carries_BK: Tensor
    """bool: whether a channel carries something about the image"""
    image_size: tuple[int, int]
    """H and W"""


class Output(NamedTuple):
    """Everything that one forward pass gives."""

    logits: Tensor
    centre_B2: Tensor | None
    """None for models without a localisation head"""
    pooled: Pooled | None
    """None for models that broadcast nothing"""


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
    image_size: tuple[int, int]
    """H and W of what the model was given"""

    @classmethod
    def of(cls, pooled: Pooled) -> "Broadcast":
        """That of the first image of a batch."""
        value, position, carries = (
            part[0].cpu().numpy() for part in (pooled.value_BK, pooled.position_BK, pooled.carries_BK)
        )
        h, w = pooled.map_BChw.shape[-2:]
        return cls(value, position, carries, (h, w), pooled.image_size)

    def counts(self) -> np.ndarray:
        """(h, w) how many channels each position supplies (section 5.4); those that carry nothing are not counted."""
        return np.bincount(self.position[self.carries], minlength=self.size[0] * self.size[1]).reshape(self.size)

    def edges(self) -> tuple[np.ndarray, np.ndarray]:
        """(h + 1,) and (w + 1,) the edges of the positions' cells on the image, from 0 to 1 down and across it."""
        rows, columns = (cell_edges(*both) / both[0] for both in zip(self.image_size, self.size, strict=True))
        return rows, columns

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the edges of the cells, and the value and position of every channel, -1 for none."""
        rows, columns = self.edges()
        return {
            "rows": rows.round(4).tolist(),
            "columns": columns.round(4).tolist(),
            "position": np.where(self.carries, self.position, -1).tolist(),
            "value": self.value.astype(float).round(3).tolist(),
        }


def pool(model: nn.Module, image_BCHW: Tensor) -> Pooled:
    """Run the CNN and the BCN alone, without a question."""
    map_BChw = model.features(image_BCHW)  # type: ignore[operator]
    bcn: Any = model.broadcast
    return _pooled(bcn, image_BCHW, map_BChw, *bcn.pooled(map_BChw))


def _pooled(broadcast: Any, image_BCHW: Tensor, map_BChw: Tensor, value_BK: Tensor, position_BK: Tensor) -> Pooled:
    H, W = image_BCHW.shape[-2:]
    return Pooled(map_BChw, value_BK, position_BK, broadcast.carries(value_BK), (H, W))


def forward_with_broadcast(model: nn.Module, image_BCHW: Tensor, question: Tensor | None) -> Output:
    """Run the model once, and keep what was pooled on the way.

    For the time of the pass `pooled` is wrapped, so one model must not run in two threads at once.
    """
    inputs = (image_BCHW,) if question is None else (image_BCHW, question)
    bcn: Any = getattr(model, "broadcast", None)
    if bcn is None:
        relation = find_rounds(model)
        return Output(*forward(model, *inputs), None) if relation is None else _with_rounds(model, relation, inputs)
    pooled, calls = bcn.pooled, list[Pooled]()

    def recorded(map_BChw: Tensor, mask_Bn: Tensor | None = None) -> tuple[Tensor, Tensor]:
        value_BK, position_BK = pooled(map_BChw, mask_Bn)
        calls.append(_pooled(bcn, image_BCHW, map_BChw, value_BK, position_BK))
        return value_BK, position_BK

    bcn.pooled = recorded
    try:
        logits, centre_B2 = forward(model, *inputs)
    finally:
        del bcn.pooled
    (call,) = calls
    return Output(logits, centre_B2, call)


def _with_rounds(model: nn.Module, relation: RoundsRelation, inputs: tuple[Tensor, ...]) -> Output:
    states, pooled = relation.states, relation.pooled
    maps, calls = list[Tensor](), list[tuple[Tensor, Tensor]]()

    def recorded_states(map_BCHW: Tensor, *rest: Any, **options: Any) -> Iterator[Tensor]:
        maps.append(map_BCHW)
        return states(map_BCHW, *rest, **options)

    def recorded(*state: Any) -> tuple[Tensor, Tensor]:
        calls.append(pooled(*state))
        return calls[-1]

    relation.states, relation.pooled = recorded_states, recorded  # type: ignore[method-assign, assignment]
    try:
        logits, centre_B2 = forward(model, *inputs)
    finally:
        del relation.states, relation.pooled
    value_BK, position_BK = (part.flatten(1) for part in calls[-1])
    H, W = inputs[0].shape[-2:]
    carries_BK = torch.ones_like(value_BK, dtype=torch.bool)
    return Output(logits, centre_B2, Pooled(maps[0], value_BK, position_BK, carries_BK, (H, W)))
