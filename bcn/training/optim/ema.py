"""Exponential moving average (EMA) of a model's weights."""

import torch
from torch import Tensor, nn


@torch.no_grad()
def update_ema(ema: nn.Module, model: nn.Module, decay: float, step: int) -> None:
    """One step of the EMA of weights and BatchNorm statistics; early steps decay faster.

    The statistics are averaged with the weights because those of the raw model belong to weights that moved on.
    """
    decay = min(decay, (1 + step) / (10 + step))
    pairs: list[tuple[Tensor, Tensor]] = [*zip(ema.parameters(), model.parameters(), strict=True)]
    for averaged, new in zip(ema.buffers(), model.buffers(), strict=True):
        if new.is_floating_point():
            pairs.append((averaged, new))
        else:
            averaged.copy_(new)
    torch._foreach_lerp_([averaged for averaged, _ in pairs], [new for _, new in pairs], 1 - decay)
