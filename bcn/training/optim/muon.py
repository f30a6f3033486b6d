"""Muon (Jordan et al. 2024): the update of a matrix is its momentum, orthogonalised.

Directions that the gradient rarely has are then learned as fast as those that it always has: in a relation network, the
few directions in which the words of questions differ. `torch.optim.Muon` takes plain matrices alone; here the kernels
of convolutions are matrices too, and the gates of an LSTM eight of them.
"""

from typing import Any

import torch
from torch import Tensor, nn

from bcn.layers.baselines.lstm import BidirectionalLayer

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
"""a x + b x^3 + c x^5, five times, takes every x from 0.01 to 1 to between 0.68 and 1.14"""
ADAM_SCALE = 0.2
"""makes an update as large as Adam's (Liu et al. 2025)"""
GATES = 8
"""of an LSTM's layer, four in each direction"""


class Muon(torch.optim.Adam):
    """Muon for matrices, Adam for all other parameters; weight decay is an L2 term in both."""

    def __init__(self, model: nn.Module, lr: float, *, momentum: float = 0.9, weight_decay: float = 0.0) -> None:
        super().__init__(model.parameters(), lr, weight_decay=weight_decay, fused=True)
        self.momentum, self.matrices = momentum, find_matrices(model)

    @torch.no_grad()
    def step(self, closure: None = None) -> Any:  # type: ignore[override]
        assert closure is None, "Muon uses the gradients as they are, and cannot compute them again"
        for group in self.param_groups:
            for weight in group["params"]:
                if weight in self.matrices and weight.grad is not None:
                    self._update(weight, group["lr"], group["weight_decay"])
                    weight.grad = None  # so that Adam leaves it alone
        return super().step()

    def _update(self, weight: Tensor, lr: float, weight_decay: float) -> None:
        assert weight.grad is not None
        shape, state = self.matrices[weight], self.state[weight]
        if not state:  # Adam wants a step wherever there is a state
            state |= {"step": torch.zeros(()), "momentum": torch.zeros_like(weight)}
        grad = weight.grad.add(weight, alpha=weight_decay)
        momentum = state["momentum"].lerp_(grad, 1 - self.momentum)
        update = orthogonalise(grad.lerp(momentum, self.momentum).reshape(shape))
        weight.add_(update.view_as(weight), alpha=-lr * ADAM_SCALE * max(shape[1:]) ** 0.5)


def find_matrices(model: nn.Module) -> dict[Tensor, tuple[int, int, int]]:
    """Each weight that Muon updates, as matrices: how many, of how many rows and columns.

    Word embeddings and the last linear layer, whose rows stand for answers, are left to Adam.
    """
    matrices: dict[Tensor, tuple[int, int, int]] = {}
    last = [module for module in model.modules() if isinstance(module, nn.Linear)][-1:]
    for module in model.modules():
        if isinstance(module, nn.Conv2d | nn.Linear) and module not in last:
            matrices[module.weight] = (1, len(module.weight), module.weight[0].numel())
        if isinstance(module, BidirectionalLayer):
            for weight in (module.weight_ih, module.weight_hh):
                matrices[weight] = (GATES, weight.shape[1] * 2 // GATES, weight.shape[2])
    return matrices


def orthogonalise(matrices: Tensor) -> Tensor:
    """The same singular vectors with singular values near 1, by five Newton-Schulz iterations.

    >>> orthogonalise(torch.diag(torch.tensor([4.0, 1.0, 0.2]))[None])[0].diagonal().round(decimals=1)
    tensor([0.7000, 0.7000, 0.8000])
    """
    a, b, c = NEWTON_SCHULZ
    x: Tensor = matrices / (matrices.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.mT
    for _ in range(5):
        square = x @ x.mT
        x = a * x + (b * square + c * square @ square) @ x
    return x.mT if tall else x
