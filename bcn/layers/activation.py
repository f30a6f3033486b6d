"""A ReLU for the end of a layer that is put into other people's networks."""

import torch
import torch.nn.functional as F
from torch import Tensor


def safe_relu(tensor: Tensor) -> Tensor:
    """ReLU, whose result the next layer may change in place: the backward pass needs the argument instead.

    >>> safe_relu(torch.tensor([-1.0, 2.0], requires_grad=True).clone()).add_(1).sum().backward()
    """
    if not torch.is_grad_enabled() or torch.compiler.is_exporting():
        return F.relu(tensor)
    return F.threshold(tensor, 0.0, 0.0)
