"""What the loops over g's layers accept, checked before any of them runs; a pointer is made only of a checked tensor.

U questions about B images of n objects; K channels of the first layer, G of the last.
"""

import ctypes
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from bcn.errors import BcnError


def check_layers(base_BnK: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor]) -> None:
    """Objects, and at least one layer, each as wide as the one before it gives."""
    if base_BnK.dim() != 3 or not base_BnK.shape[1]:
        raise BcnError(f"base has the shape {tuple(base_BnK.shape)}: accepted is (B, n, K), n above 0")
    if not weights or len(weights) != len(biases):
        raise BcnError(
            f"{len(weights)} weights and {len(biases)} biases: accepted is at least one layer, each with both"
        )
    widths = [base_BnK.shape[2], *(len(weight) for weight in weights)]
    for layer, (narrow, wide) in enumerate(pairwise(widths)):
        _check_shape(f"weight {layer + 1}", weights[layer], (wide, narrow))
        _check_shape(f"bias {layer + 1}", biases[layer], (wide,))


def check_questions(base_BnK: Tensor, shift_UK: Tensor, owner_U: Tensor) -> None:
    """Every question is about one of the images, in their order."""
    _check_shape("shift", shift_UK, (len(shift_UK), base_BnK.shape[2]))
    _check_shape("owner", owner_U, (len(shift_UK),))
    images = owner_U.tolist()
    in_range = not images or (images[0] >= 0 and images[-1] < len(base_BnK))
    if not in_range or images != sorted(images) or owner_U.dtype != torch.int64:
        raise BcnError(
            f"owner is {images[:8]} of {owner_U.dtype}: accepted are images from 0 to {len(base_BnK) - 1} "
            "that never decrease, of torch.int64"
        )


def pointer(
    tensor: Tensor | None,
    shape: tuple[int, ...],
    dtype: torch.dtype = torch.float32,
    memory_format: torch.memory_format = torch.contiguous_format,
) -> ctypes.c_void_p:
    """The address of a tensor of exactly this shape, type and order in memory; null for None."""
    if tensor is None:
        return ctypes.c_void_p(None)
    if tensor.shape != shape or tensor.dtype != dtype or not tensor.is_cpu:
        raise BcnError(
            f"a tensor of {tensor.dtype} with the shape {tuple(tensor.shape)} on {tensor.device}: the loop in C "
            f"accepts {dtype} with the shape {shape} on the CPU"
        )
    if not tensor.is_contiguous(memory_format=memory_format):
        raise BcnError(f"a tensor with the strides {tensor.stride()}: the loop in C accepts {memory_format}")
    return ctypes.c_void_p(tensor.data_ptr())


def _check_shape(name: str, tensor: Tensor, shape: tuple[int, ...]) -> None:
    if tensor.shape != shape:
        raise BcnError(f"{name} has the shape {tuple(tensor.shape)}: accepted is {shape}")
