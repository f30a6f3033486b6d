"""Initial weights that depend on data: a BCN that varies from image to image, and a next layer that it moves.

With PyTorch's initial weights the broadcast vector varies over images by about 0.015 where objects vary by 1, so to g
it is a bias. `balance_broadcast` runs one batch through a fresh network and rescales the weights that are there: no
parameter is added, and every equation stays.

B images, K channels of the broadcast vector; a source is what one part of a concatenation gives to the next layer.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from bcn.errors import BcnError
from bcn.layers.broadcast import BroadcastConv
from bcn.layers.pointwise import ConcatConv1x1
from bcn.layers.relation import MultiRelation
from bcn.layers.rounds import RoundsRelation, add_parts
from bcn.models.blocks import BroadcastBlock, Broadcasting
from bcn.models.question_encoder import PackedQuestions

Network = TypeVar("Network", bound=nn.Module)
SPREADS = {"objects": 1.0, "broadcast": 0.5, "planes": 1.0, "question": 1.0, "hidden": 1.0}
"""standard deviation by which each source moves the pre-activations of the next layer"""
ROWS = 65_536
"""of a source that are in double precision at once"""
POSITIVE_BIAS = 1.0
"""far more than PyTorch's initial weights make the maxima vary by: every channel starts above zero for every image"""


@torch.no_grad()
def balance_broadcast(model: Network, *inputs: Tensor | PackedQuestions) -> Network:
    """Give a fresh network with a BCN variance-balanced initial weights; the model is changed and given back.

    The BCN's last convolution is scaled and shifted so that each of its K pooled channels, before the final ReLU if
    there is one, has mean 0 and standard deviation 1 over the images. Then each source's weights in the layer over
    [objects, broadcast, planes, question], g's first or the 1x1 convolution of `insert_broadcast`, are scaled by one
    factor, so that the source moves that layer by `SPREADS`: the standard deviation over the batch, root mean square
    over channels. A `MultiRelation` without a BCN gets the second part alone, a `BroadcastBlock` that reduces the first
    alone. In a `RoundsRelation` every round is balanced in turn, each on what the one before it gives.

    The network runs once, as it is: BatchNorm in training mode takes the statistics of this batch, and its running
    statistics stay. Dropout is off. Nothing is random.

    Args:
        inputs: a training batch as the model takes it: images, or objects and their mask, and questions where it is
            asked; 256 images are plenty.

    >>> cnn = nn.Sequential(nn.Conv2d(3, 8, 3), BroadcastConv(8, (16, 16), final_relu=False))
    >>> vector = balance_broadcast(cnn, images := torch.rand(64, 3, 9, 9))(images)[:, :16, 0, 0]
    >>> vector.mean().abs() < 1e-5, vector.std(dim=0, correction=0).allclose(torch.ones(16))
    (tensor(True), True)
    """
    balanced: list[nn.Module] = []

    def balance(module: nn.Module, inputs: tuple[Any, ...]) -> None:
        map_BCHW, *others = inputs  # questions and a mask, where there are any
        balanced.append(module)
        if isinstance(module, RoundsRelation):
            _balance_rounds(module, map_BCHW, *others)
            return
        broadcast = module if isinstance(module, BroadcastConv) else module.broadcast
        if isinstance(broadcast, BroadcastConv):
            _standardise(broadcast.k[-1], broadcast.responses(map_BCHW, *others[1:]))
        starts_as_identity = isinstance(module, BroadcastBlock) and module.gamma is None
        if isinstance(module, MultiRelation | Broadcasting) and not starts_as_identity:
            _equalise(next_layer(module), module.sources(map_BCHW, *others))

    places = junctions(model)
    run_hooked(model, places, balance, *inputs)
    if missed := [type(module).__name__ for module in places if balanced.count(module) != 1]:
        raise BcnError(f"{', '.join(missed)} did not run exactly once in the model: balance networks where it does")
    if not places:
        raise BcnError("the model has no BCN to balance: give one with a BroadcastConv or a MultiRelation")
    return model


@torch.no_grad()
def raise_bias(model: nn.Module) -> None:
    """Start every channel of the BCNs above zero, by the biases of their last convolutions."""
    for module in model.modules():
        if isinstance(module, BroadcastConv):
            nn.init.constant_(module.k[-1].bias, POSITIVE_BIAS)  # type: ignore[arg-type]


def junctions(model: nn.Module) -> list[nn.Module]:
    """The modules that are called with the map that a BCN sees, the outermost of each."""
    kinds = MultiRelation | RoundsRelation | Broadcasting | BroadcastConv
    found = [module for module in model.modules() if isinstance(module, kinds)]
    inner = [module.broadcast for module in found if isinstance(module, MultiRelation | Broadcasting)]
    return [module for module in found if not any(module is other for other in inner)]


def next_layer(module: MultiRelation | Broadcasting) -> ConcatConv1x1:
    """The layer over the concatenation that the broadcast vector is part of."""
    return module.g.first if isinstance(module, MultiRelation) else module.reduce


class Moments:
    """Mean and covariance of the rows of a source, added up batch by batch."""

    def __init__(self) -> None:
        self.count, self.total_S, self.square_SS = 0, torch.zeros(()), torch.zeros(())

    def add(self, rows: Tensor) -> None:
        rows = rows.cpu().double()  # which Apple's GPUs do not have
        self.count += len(rows)
        self.total_S = self.total_S + rows.sum(dim=0)
        self.square_SS = self.square_SS + rows.T @ rows

    def spread(self, weight: Tensor) -> float:
        """The standard deviation by which the source moves a layer with this weight, root mean square over channels.

        >>> moments = Moments()
        >>> moments.add(torch.tensor([[0.0], [2.0]]))
        >>> round(moments.spread(torch.tensor([[3.0], [4.0]])) ** 2, 6)
        12.5
        """
        mean_S, weight = self.total_S / self.count, weight.cpu().double()
        covariance = self.square_SS / self.count - mean_S.outer(mean_S)
        return float(((weight @ covariance) * weight).sum(dim=1).mean().clamp(min=0).sqrt())


def run_hooked(
    model: nn.Module,
    modules: list[nn.Module],
    hook: Callable[[nn.Module, tuple[Any, ...]], None],
    *inputs: Tensor | PackedQuestions,
) -> None:
    """Run a model on its inputs with a hook before these modules; buffers stay as they are, dropout is off."""
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    dropouts = [module for module in model.modules() if isinstance(module, _DropoutNd) and module.training]
    handles = [module.register_forward_pre_hook(hook) for module in modules]
    try:
        for dropout in dropouts:
            dropout.eval()
        model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for dropout in dropouts:
            dropout.train()
        for name, buffer in model.named_buffers():
            buffer.copy_(buffers[name])


def _balance_rounds(module: RoundsRelation, map_BCHW: Tensor, question: Tensor, mask_Bn: Tensor | None = None) -> None:
    def present(source: Tensor) -> Tensor:
        """The rows of a source (B, Q, n, channels) that are of objects that are there."""
        if mask_Bn is None or source.shape[0] * source.shape[2] != mask_Bn.numel():  # the same for all, or no objects
            return source.flatten(0, -2)
        return source[mask_Bn[:, None].expand(source.shape[:-1])]

    def visit(layer: ConcatConv1x1, sources: dict[str, Tensor]) -> None:
        if any(layer is says for says in module.says):
            said = add_parts(layer, *sources.values())
            absent = (
                torch.zeros_like(said[..., :1], dtype=torch.bool) if mask_Bn is None else ~mask_Bn[:, None, :, None]
            )
            _standardise(layer, said.masked_fill(absent, -torch.inf).amax(dim=2).flatten(0, 1))
        else:
            _equalise(layer, {name: present(source) for name, source in sources.items()})

    module.forward(map_BCHW, question, mask_Bn, visit=visit)  # not its hooks, which called this


def _standardise(last: nn.Module, response_BK: Tensor) -> None:
    """Mean 0 and standard deviation 1 for every pooled channel; one that does not vary keeps its weights."""
    assert isinstance(last, ConcatConv1x1)
    assert last.bias is not None
    std_K, mean_K = torch.std_mean(response_BK.cpu().double(), dim=0, correction=0)
    std_K = torch.where(std_K > 0, std_K, torch.ones_like(std_K))
    last.weight.copy_(last.weight.cpu().double() / std_K[:, None, None, None])
    last.bias.copy_((last.bias.cpu().double() - mean_K) / std_K)


def _equalise(layer: ConcatConv1x1, sources: dict[str, Tensor]) -> None:
    for (name, source), weight in zip(sources.items(), layer.parts(), strict=True):
        moments = Moments()
        for some in source.split(ROWS):
            moments.add(some)
        if weight.shape[1] and (now := moments.spread(weight)) > 0:
            weight.mul_(SPREADS[name] / now)
