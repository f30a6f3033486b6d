"""Muon (Jordan et al. 2024): the step of a matrix is its momentum with all singular values brought near 1.

What the gradient hardly ever asks for is then learned as fast as what it asks for all the time: in a relation network,
the few directions in which a question's words differ. `torch.optim.Muon` takes plain matrices alone; here the kernels
of convolutions are matrices too, and the gates of an LSTM eight of them.
"""

from typing import Any

import torch
from torch import Tensor, nn

from bcn.layers.baselines.lstm import BidirectionalLayer

QUINTIC = (3.4445, -4.7750, 2.0315)
"""a x + b x^3 + c x^5, five times, takes every x from 0.01 to 1 to between 0.68 and 1.14"""
LIKE_ADAM = 0.2
"""makes a step as large as Adam's (Liu et al. 2025)"""
GATES = 8
"""of an LSTM's layer, four in each direction"""


class Muon(torch.optim.Adam):
    """Adam, but for matrices; weight decay is an L2 term in both."""

    def __init__(self, model: nn.Module, lr: float, *, momentum: float = 0.9, weight_decay: float = 0.0) -> None:
        super().__init__(model.parameters(), lr, weight_decay=weight_decay, fused=True)
        self.momentum, self.matrices = momentum, find_matrices(model)

    @torch.no_grad()
    def step(self, closure: None = None) -> Any:  # type: ignore[override]
        assert closure is None, "gradients are turned as they are, so nothing can compute them again in between"
        for group in self.param_groups:
            for weight in group["params"]:
                if weight in self.matrices and weight.grad is not None:
                    self._turn(weight, group["lr"], group["weight_decay"])
                    weight.grad = None  # so that Adam leaves it alone
        return super().step()

    def _turn(self, weight: Tensor, lr: float, weight_decay: float) -> None:
        assert weight.grad is not None
        shape, state = self.matrices[weight], self.state[weight]
        if not state:  # Adam wants a step wherever there is a state
            state |= {"step": torch.zeros(()), "momentum": torch.zeros_like(weight)}
        slope = weight.grad.add(weight, alpha=weight_decay)
        momentum = state["momentum"].lerp_(slope, 1 - self.momentum)
        direction = even(slope.lerp(momentum, self.momentum).reshape(shape))
        weight.add_(direction.view_as(weight), alpha=-lr * LIKE_ADAM * max(shape[1:]) ** 0.5)


def find_matrices(model: nn.Module) -> dict[Tensor, tuple[int, int, int]]:
    """Each weight that is turned as matrices: how many, of how many rows and columns.

    Vectors of words and the last linear layer, whose rows stand for answers, are left to Adam.
    """
    found: dict[Tensor, tuple[int, int, int]] = {}
    last = [module for module in model.modules() if isinstance(module, nn.Linear)][-1:]
    for module in model.modules():
        if isinstance(module, nn.Conv2d | nn.Linear) and module not in last:
            found[module.weight] = (1, len(module.weight), module.weight[0].numel())
        if isinstance(module, BidirectionalLayer):
            for weight in (module.weight_ih, module.weight_hh):
                found[weight] = (GATES, weight.shape[1] * 2 // GATES, weight.shape[2])
    return found


def even(matrices: Tensor) -> Tensor:
    """The same singular vectors with singular values near 1, by five steps of Newton's and Schulz's kind.

    >>> even(torch.diag(torch.tensor([4.0, 1.0, 0.2]))[None])[0].diagonal().round(decimals=1)
    tensor([0.7000, 0.7000, 0.8000])
    """
    a, b, c = QUINTIC
    x: Tensor = matrices / (matrices.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.mT
    for _ in range(5):
        square = x @ x.mT
        x = a * x + (b * square + c * square @ square) @ x
    return x.mT if tall else x
