"""A BCN in any network: `insert_broadcast(model, after="layer3")`.

B images, C channels, H x W positions.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from bcn.errors import BcnError, did_you_mean
from bcn.layers.broadcast import BroadcastConv
from bcn.models.blocks import Broadcasting

Network = TypeVar("Network", bound=nn.Module)


def insert_broadcast(
    model: Network,
    after: str,
    *,
    sizes: Sequence[int] = (128, 128, 256),
    reduce_to: int | None = None,
    planes: str = "xyr",
    origin: str = "centre",
    final_relu: bool = True,
    image: Tensor | None = None,
) -> Network:
    """Let every position after the named submodule see what a BCN broadcasts; the model is changed and given back.

    A 1x1 convolution then brings [F, BCN(F)] to `reduce_to` channels, by default to as many as there were, which is
    what the next layer expects. Existing weights keep their values and names; the new are under `<after>.broadcast`.
    The channels are found by running the model as far as the submodule, on `image` or on an empty 224x224 one.

    >>> cnn = nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Conv2d(32, 10, 3))
    >>> insert_broadcast(cnn, after="1", sizes=(64, 64))(torch.zeros(2, 3, 20, 30)).shape
    torch.Size([2, 10, 16, 26])

    Args:
        after: the name of a submodule that gives one map (B, C, H, W), as in `model.named_modules()`.
        sizes, planes, origin, final_relu: of the `BroadcastConv`.
        reduce_to: channels after the 1x1 convolution.
        image: an input of the model, to find the channels with.
    """
    if reduce_to is not None and reduce_to < 1:
        raise BcnError(f"reduce_to={reduce_to}: give the channels that the next layer takes, at least 1")
    modules = {name: module for name, module in model.named_modules(remove_duplicate=False) if name}
    if after not in modules:
        raise did_you_mean("submodule", str(after), modules)
    place = modules[after]
    if hasattr(place, "broadcast"):
        raise BcnError(f"{after!r} already has something called broadcast: insert after another submodule")
    found, failed_before = _run_until(place, model, image), _failure(model, image)
    channels = found.shape[1]
    broadcast = BroadcastConv(channels, sizes, planes=planes, origin=origin, final_relu=final_relu)
    inserted = Broadcasting(channels, broadcast, reduce_to=reduce_to).to(found)
    place.add_module("broadcast", inserted.train(model.training))
    hook = None
    if type(place).forward is not nn.Sequential.forward:  # which runs what is added to it by itself
        hook = place.register_forward_hook(_broadcast)
    calls: list[None] = []
    counter = inserted.register_forward_pre_hook(lambda _, __: calls.append(None))
    failed = _failure(model, image)
    counter.remove()
    if len(calls) == 1 and (not failed or failed_before or reduce_to not in (None, channels)):
        return model
    del place.broadcast
    if hook is not None:
        hook.remove()
    raise BcnError(
        f"a BCN after {after!r} would run {len(calls)} times when the model runs{f' ({failed})' if failed else ''}: "
        "this submodule is called more than once, or goes through its own parts, so insert after another one"
    )


def _broadcast(module: nn.Module, _: Any, output: Tensor) -> Tensor:
    """A plain function that finds the BCN in the module, so that a deep copy runs its own and not the original's."""
    assert isinstance(module.broadcast, Broadcasting)
    broadcast: Tensor = module.broadcast(output)
    return broadcast


def _failure(model: nn.Module, image: Tensor | None) -> Exception | None:
    """What goes wrong when the model runs to its end."""
    try:
        _run(model, image)
    except Exception as error:
        return error
    return None


def _run(model: nn.Module, image: Tensor | None) -> None:
    """The model as in evaluation; nothing in it changes."""
    modes = {module: module.training for module in model.modules()}
    try:
        with torch.no_grad():
            model.eval()(_empty(model) if image is None else image)
    finally:
        for module, mode in modes.items():
            module.training = mode


class _Reached(Exception):
    """Ends the run of a model at the submodule."""


def _run_until(place: nn.Module, model: nn.Module, image: Tensor | None) -> Tensor:
    """What the submodule gives; the rest of the model does not run, and nothing in it changes."""
    given: list[Any] = []

    def stop(_: nn.Module, __: Any, output: Any) -> None:
        given.append(output)
        raise _Reached

    handle = place.register_forward_hook(stop)
    try:
        _run(model, image)
    except _Reached:
        pass
    except Exception as error:
        raise BcnError(
            f"the model cannot be run to find its channels ({error}): give `image`, an input of it"
        ) from error
    finally:
        handle.remove()
    if not given:
        raise BcnError("the submodule is never called when the model runs: insert after one that is")
    if not isinstance(given[0], Tensor) or given[0].dim() != 4:
        raise BcnError("the submodule does not give one map (B, C, H, W): insert after one that does")
    return given[0]


def _empty(model: nn.Module) -> Tensor:
    first = next((module for module in model.modules() if isinstance(module, nn.Conv2d)), None)
    if first is None:
        raise BcnError("it has no convolution")
    return first.weight.new_zeros(1, first.in_channels, 224, 224)
