"""One step: the loss of each part of a batch, gradients added up, clipped, the optimiser, the EMA."""

from contextlib import nullcontext

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from bcn.data.dataset import Batch
from bcn.training.forward import device_of
from bcn.training.optim.ema import update_ema
from bcn.training.recipe import Recipe
from bcn.training.runtime import autocast
from bcn.training.state import State


def take_step(state: State, recipe: Recipe, loss_module: nn.Module, *batches: Batch, scale: float) -> Tensor:
    """Change the state by one step, and return the loss, which nobody has waited for.

    Args:
        loss_module: from a batch to its summed loss.
        scale: of the summed loss, for it to be a mean.
    """
    optim, device, losses = recipe.optim, device_of(state.model), []
    state.optimiser.zero_grad(set_to_none=True)
    for batch in batches:
        adds_up = batch is not batches[-1] and isinstance(loss_module, DistributedDataParallel)
        with loss_module.no_sync() if adds_up else nullcontext():  # type: ignore[operator]
            with autocast(recipe.precision, device):
                loss: Tensor = loss_module(batch) * scale
            loss.backward()
        losses.append(loss.detach())
    if optim.clip_norm is not None:
        nn.utils.clip_grad_norm_(state.trained, optim.clip_norm)
    state.optimiser.step()
    if state.ema is not None and optim.ema_decay is not None:
        update_ema(state.ema, state.model, optim.ema_decay, state.position.step)
    return losses[0] if len(losses) == 1 else torch.stack(losses).sum()
