"""The sum over objects in chunks of plain operators, for GPUs: memory that does not grow with the number of pairs.

Each chunk is computed a second time in the backward pass, so that of all pairs only one chunk's activations exist at
any time. What fits into one chunk is computed once, and its activations are kept.

B images of n objects, Q questions about each, m offsets of an image; K channels of g's first layer, G of its last.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from bcn.layers.pointwise import further_layers

CHUNK_ROWS = 65_536
"""sums of a chunk, objects x offsets x questions: with 256 channels 64 MB for each layer in float32, enough work to
fill a large GPU"""


def sum_in_chunks(
    base_BnK: Tensor,
    shift_BQK: Tensor,
    offset_BmK: Tensor | None,
    weights: list[Tensor],
    biases: list[Tensor],
    mask_Bmn: Tensor | None = None,
) -> Tensor:
    """sum over n and m of relu(... relu(W_2 relu(base_n + offset_m + shift) + b_2) ...): (B, Q, G).

    Args:
        mask_Bmn: bool, the terms that are summed; by default all. m is 1 without offsets.
    """
    counted = base_BnK.is_meta and not torch.is_grad_enabled()  # by `bcn.models.cost`; it holds nothing
    if counted or torch.compiler.is_exporting():
        return _sum(base_BnK, shift_BQK, offset_BmK, weights, biases, mask_Bmn)
    images, questions, objects = len(base_BnK), shift_BQK.shape[1], base_BnK.shape[1]
    offsets = 1 if offset_BmK is None else offset_BmK.shape[1]
    if images * questions * objects * offsets <= CHUNK_ROWS:
        return _sum(base_BnK, shift_BQK, offset_BmK, weights, biases, mask_Bmn)
    at_once_m = min(offsets, max(1, CHUNK_ROWS // objects))
    at_once_q = min(questions, max(1, CHUNK_ROWS // (objects * at_once_m)))
    at_once_b = min(images, max(1, CHUNK_ROWS // (objects * at_once_m * at_once_q)))
    totals = []
    for image, base in enumerate(base_BnK.split(at_once_b)):
        shifts = shift_BQK.split(at_once_b)[image].split(at_once_q, dim=1)
        parts = [None] if offset_BmK is None else offset_BmK.split(at_once_b)[image].split(at_once_m, dim=1)
        masks = [None] * len(parts) if mask_Bmn is None else mask_Bmn.split(at_once_b)[image].split(at_once_m, dim=1)
        terms = list(zip(parts, masks, strict=True))
        sums = [[_sum_again(base, shift, part, weights, biases, mask) for part, mask in terms] for shift in shifts]
        totals.append(torch.cat([_add_up(of_question) for of_question in sums], dim=1))
    return torch.cat(totals)


def _sum_again(*inputs: Any) -> Tensor:
    """`_sum`, of which the backward pass keeps the inputs alone."""
    if not torch.is_grad_enabled():
        return _sum(*inputs)
    total: Tensor = checkpoint(_sum, *inputs, use_reentrant=False, preserve_rng_state=False)
    return total


def _add_up(sums: list[Tensor]) -> Tensor:
    return sums[0] if len(sums) == 1 else torch.stack(sums).sum(dim=0)


def _sum(
    base_BnK: Tensor,
    shift_BQK: Tensor,
    offset_BmK: Tensor | None,
    weights: list[Tensor],
    biases: list[Tensor],
    mask_Bmn: Tensor | None,
) -> Tensor:
    shift_BQmK = shift_BQK[:, :, None] if offset_BmK is None else shift_BQK[:, :, None] + offset_BmK[:, None]
    hidden = base_BnK[:, None, None] + shift_BQmK[:, :, :, None]  # (B, Q, m, n, K)
    last = F.relu(further_layers(hidden, weights, biases))
    if mask_Bmn is not None:
        last = last.masked_fill(~mask_Bmn[:, None, :, :, None], 0)
    # With activations in 16 bits, still a sum in 32: 784 objects add up to what bfloat16 rounds by 2.
    wide = torch.float32 if last.dtype in (torch.bfloat16, torch.float16) else None
    return last.sum(dim=3, dtype=wide).sum(dim=2)
