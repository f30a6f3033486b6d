"""Whether a fast form may run: decided here, and nowhere else.

The plain form runs on other devices, under autocast, where a model is traced (torch.export, torch.jit.trace and, for
what is no operator of torch, torch.compile), where a mode looks at each operator (FlopCounterMode), and for tensors
without values (meta device, fake tensors). Which of its own forms a fused reduction takes, C or torch, depends on
`native.supports` alone.
"""

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.utils._python_dispatch import is_in_torch_dispatch_mode


def may_fuse(*tensors: Tensor, operator: bool) -> bool:
    """Whether a fused form may run on these tensors.

    Args:
        operator: it is a registered operator, which torch.compile keeps whole in its graph.
    """
    if _is_traced() or torch.is_autocast_enabled("cpu"):
        return False
    if not torch.compiler.is_compiling() and is_in_torch_dispatch_mode():
        return False
    return all(tensor.is_cpu for tensor in tensors) and (operator or has_values(*tensors))


def on_accelerator(tensor: Tensor) -> bool:
    """Whether a tensor is on a GPU or the like, where each operator is launched and reading a value means to wait."""
    if torch.compiler.is_compiling() or torch.compiler.is_exporting():
        return False
    return tensor.device.type not in ("cpu", "meta")


def has_values(*tensors: Tensor) -> bool:
    """Whether the tensors are on the CPU and hold numbers, for Python to look at: to pack, to find duplicates."""
    if torch.compiler.is_compiling() or _is_traced():
        return False
    return all(type(tensor) in (Tensor, Parameter) and tensor.is_cpu for tensor in tensors)


def _is_traced() -> bool:
    """Whether torch.export or torch.jit.trace records what runs."""
    return torch.compiler.is_exporting() or bool(torch.jit.is_tracing())  # type: ignore[attr-defined, no-untyped-call]
