"""What a BCN is worth in a model: how many channels are active, what they carry, and what is lost without them.

B images, K channels of the broadcast vector; R rounds, U questions about all images.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from bcn.data.dataset import IGNORE_INDEX, Dataset
from bcn.layers.broadcast import BroadcastConv
from bcn.layers.pointwise import ConcatConv1x1
from bcn.layers.relation import MultiRelation
from bcn.layers.rounds import RoundsRelation, find_rounds
from bcn.models.balance import Moments, junctions, next_layer, run_hooked
from bcn.models.blocks import Broadcasting
from bcn.training.distributed import Ranks
from bcn.training.forward import forward, inputs_of, send
from bcn.training.metrics import compute_metrics, evaluate, headline

ACTIVE, ROUNDING = 0.01, 1e-6
"""a channel is active if its standard deviation over images is more than this share of that of all channels (root mean
square), and more than rounding makes of its mean"""
BATCH = 64
"""images at a time"""


class Collected(NamedTuple):
    """A data set as the BCN of a model sees it."""

    broadcast: BroadcastConv
    vector_BK: Tensor
    spreads: dict[str, float]
    """by how much each source moves the layer after the BCN; empty where that is not known"""


def active_channels(vector_BK: Tensor) -> Tensor:
    """Which channels vary over images: bool (K). What they then carry, `vector_share` says.

    >>> active_channels(torch.tensor([[1.0, 5.0, 0.0], [-1.0, 5.0, 0.001]]))
    tensor([ True, False, False])
    """
    std_K, mean_K = torch.std_mean(vector_BK.cpu().double(), dim=0, correction=0)
    return (std_K > ACTIVE * std_K.square().mean().sqrt()) & (std_K > ROUNDING * mean_K.abs())


@torch.inference_mode()
def collect(model: nn.Module, dataset: Dataset) -> Collected | None:
    """Run all images of a data set as far as the BCN; None where the model has none, or more than one."""
    places = [place for place in junctions(model) if _has_vector(place)]
    if len(places) != 1:
        return None
    (module,) = places
    broadcast = module if isinstance(module, BroadcastConv) else module.broadcast
    assert isinstance(broadcast, BroadcastConv)
    vectors: list[Tensor] = []
    moments: dict[str, Moments] = {}

    def take(_: nn.Module, inputs: tuple[Any, ...]) -> None:
        sources = {"broadcast": broadcast.pooled(inputs[0], *inputs[2:])[0]}
        if isinstance(module, MultiRelation | Broadcasting):
            sources = module.sources(*inputs)
            for name, rows in sources.items():
                moments.setdefault(name, Moments()).add(rows)
        vectors.append(sources["broadcast"])
        raise _Reached

    was_training = model.training
    model.eval()
    for start in range(0, len(dataset), BATCH):
        batch = send(dataset[range(start, min(start + BATCH, len(dataset)))], model)
        with suppress(_Reached):
            run_hooked(model, places, take, *inputs_of(batch, dataset.preprocessing))
    model.train(was_training)
    spreads = {}
    if isinstance(module, MultiRelation | Broadcasting):
        weights = dict(zip(moments, next_layer(module).parts(), strict=True))
        spreads = {name: moments[name].spread(weight) for name, weight in weights.items() if weight.shape[1]}
    return Collected(broadcast, torch.cat(vectors), spreads)


def _has_vector(place: nn.Module) -> bool:
    """Whether a module broadcasts one vector for an image, whatever is asked."""
    return isinstance(place, BroadcastConv) or getattr(place, "broadcast", None) is not None


class _Reached(Exception):
    """Ends the run of a model at the BCN."""


def probe(model: nn.Module, dataset: Dataset) -> dict[str, Any] | None:
    """The number of active channels, and the share of the next layer's variance that the vector carries.

    That layer is g's first, over [objects, vector, planes, question]; the variances of the four are added up.
    """
    collected = collect(model, dataset)
    return None if collected is None else _describe(collected)


def ablate(model: nn.Module, dataset: Dataset, *, ranks: Ranks | None = None) -> dict[str, Any] | None:
    """The same, and the accuracy as it is, with the vector's mean over images, and with the vectors of other images.

    Shuffling gives every image the vector of the one before it in a batch of 64, and the first that of the last. Of a
    model that broadcasts after asking the channels are those of all rounds, and the mean is over questions too.
    """
    if (relation := find_rounds(model)) is not None:
        vector_RUK = collect_rounds(model, relation, dataset)
        active = sum(int(active_channels(vector_UK).sum()) for vector_UK in vector_RUK)
        result: dict[str, Any] = {"active_channels": active, "channels": len(vector_RUK) * vector_RUK.shape[2]}
        mean_RK, change_rounds = vector_RUK.mean(dim=1), partial(replaced_rounds, relation)
        changes: dict[str, AbstractContextManager[None]] = {
            "as_trained": nullcontext(),
            "mean_vector": change_rounds(lambda vector_BQ1K, number: mean_RK[number].expand_as(vector_BQ1K)),
            "shuffled_vector": change_rounds(lambda vector_BQ1K, number: vector_BQ1K.roll(1, dims=0)),
        }
    else:
        if (collected := collect(model, dataset)) is None:
            return None
        result, mean_K = _describe(collected), collected.vector_BK.mean(dim=0)
        changes = {
            "as_trained": nullcontext(),
            "mean_vector": replaced_vector(collected.broadcast, lambda vector_BK: mean_K.expand_as(vector_BK)),
            "shuffled_vector": replaced_vector(collected.broadcast, lambda vector_BK: vector_BK.roll(1, dims=0)),
        }
    for name, change in changes.items():
        with change:
            counts = evaluate(model, dataset, batch_size=BATCH, ranks=ranks)
            result[name] = headline(compute_metrics(counts, dataset), dataset)
    return result


@torch.inference_mode()
def collect_rounds(model: nn.Module, relation: RoundsRelation, dataset: Dataset) -> Tensor:
    """The vectors of all rounds for each question of a data set that is asked: (R, U, K)."""
    vectors, rounds = list[Tensor](), list[Tensor]()

    def keep(vector_BQ1K: Tensor, number: int) -> Tensor:
        rounds.append(vector_BQ1K[:, :, 0])
        return vector_BQ1K

    was_training = model.training
    model.eval()
    with replaced_rounds(relation, keep):
        for start in range(0, len(dataset), BATCH):
            batch = send(dataset[range(start, min(start + BATCH, len(dataset)))], model)
            rounds.clear()
            forward(model, *inputs_of(batch, dataset.preprocessing))
            vectors.append(torch.stack(rounds)[:, batch.answer != IGNORE_INDEX])
    model.train(was_training)
    return torch.cat(vectors, dim=1)


@contextmanager
def replaced_rounds(relation: RoundsRelation, change: Callable[[Tensor, int], Tensor]) -> Iterator[None]:
    """Rounds that broadcast something else than they compute: a function of (B, Q, 1, K) and the round's number."""
    compute, layers = relation.pooled, list(relation.says)

    def pooled(says: ConcatConv1x1, before_BQnW: Tensor, mask_Bn: Tensor | None = None) -> tuple[Tensor, Tensor]:
        vector_BQ1K, position_BQ1K = compute(says, before_BQnW, mask_Bn)
        return change(vector_BQ1K, layers.index(says)), position_BQ1K

    relation.pooled = pooled  # type: ignore[method-assign]
    try:
        yield
    finally:
        del relation.pooled


@contextmanager
def replaced_vector(broadcast: BroadcastConv, change: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """A BCN that broadcasts something else than what it computes."""
    compute = broadcast.pooled

    def pooled(map_BCHW: Tensor, mask_Bn: Tensor | None = None) -> tuple[Tensor, Tensor]:
        vector_BK, position_BK = compute(map_BCHW, mask_Bn)
        return change(vector_BK), position_BK

    broadcast.pooled = pooled  # type: ignore[method-assign]
    try:
        yield
    finally:
        del broadcast.pooled


def _describe(collected: Collected) -> dict[str, Any]:
    active_K = active_channels(collected.vector_BK)
    described: dict[str, Any] = {"active_channels": int(active_K.sum()), "channels": len(active_K)}
    if total := sum(value**2 for value in collected.spreads.values()):
        described["vector_share"] = round(collected.spreads["broadcast"] ** 2 / total, 6)
    return described
