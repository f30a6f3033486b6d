"""Whether a fast form may run: decided here, and nowhere else.

The plain form runs on other devices, under autocast, where a model is traced (torch.export and, for what is no operator
of torch, torch.compile), and for tensors without values (meta device, fake tensors). Which of its own forms a fused
reduction takes, C or torch, depends on `native.supports` alone.
"""

import torch
from torch import Tensor
from torch.nn import Parameter


def may_fuse(*tensors: Tensor, operator: bool) -> bool:
    """Whether a fused form may run on these tensors.

    Args:
        operator: it is a registered operator, which torch.compile keeps whole in its graph.
    """
    if torch.compiler.is_exporting() or torch.is_autocast_enabled("cpu"):
        return False
    return all(tensor.is_cpu for tensor in tensors) and (operator or has_values(*tensors))


def has_values(*tensors: Tensor) -> bool:
    """Whether the tensors hold numbers now, which Python may look at: to pack, to sort out duplicates, to call C."""
    if torch.compiler.is_compiling() or torch.compiler.is_exporting():
        return False
    return all(type(tensor) in (Tensor, Parameter) and not tensor.is_meta for tensor in tensors)
