"""A BCN in any network: `insert_broadcast(model, after="layer3")`.

B images, C channels, H x W positions.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from bcn.errors import BcnError, did_you_mean
from bcn.layers.broadcast import BroadcastConv
from bcn.models.blocks import BroadcastBlock, Broadcasting

Network = TypeVar("Network", bound=nn.Module)


def insert_broadcast(
    model: Network,
    after: str | Sequence[str],
    *,
    sizes: Sequence[int] = (128, 128, 256),
    reduce_to: int | None = None,
    residual: bool = False,
    planes: str = "xyr",
    origin: str = "centre",
    final_relu: bool = False,
    image: Tensor | None = None,
) -> Network:
    """Let every position after the named submodules see what a BCN broadcasts; the model is changed and given back.

    **What**: into a network that is trained already, insert with `residual=True`: it is a `BroadcastBlock`, and at
    first the network's outputs are what they were. Else, as in section 5.2, a 1x1 convolution brings [F, BCN(F)] to
    `reduce_to` channels, by default to as many as there were, which is what the next layer expects.

    **Where**: late, where a position already knows what is there, and before the last stage, whose convolutions then
    combine it with what is elsewhere. So do the paper's models: after `layer3` of a ResNet, after the second of three
    blocks and the third of four. After the last stage nothing is left to combine; before the first the BCN sees pixels.

    Existing weights keep their values and names; the new are under `<after>.broadcast`. The channels are found by
    running the model as far as the submodule, on `image` or on an empty 224x224 one. Then it runs to its end, forward
    and backward. Maps (B, H, W, C), as Swin has them, are recognised by their height and width.

    >>> cnn = nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Conv2d(32, 10, 3))
    >>> insert_broadcast(cnn, after="1", sizes=(64, 64))(torch.zeros(2, 3, 20, 30)).shape
    torch.Size([2, 10, 16, 26])

    Args:
        after: the name of a submodule that gives one map (B, C, H, W), as in `model.named_modules()`, or several.
        sizes, planes, origin, final_relu: of the `BroadcastConv`; with `final_relu=False` no channel can die.
        reduce_to: channels after the 1x1 convolution.
        residual: add to the map instead of replacing it, at first nothing.
        image: an input of the model, to find the channels with.
    """
    if reduce_to is not None and (reduce_to < 1 or residual):
        raise BcnError(
            f"reduce_to={reduce_to}: give the channels that the next layer takes, at least 1, and none where residual"
        )

    def build(channels: int) -> Broadcasting:
        if residual:
            return BroadcastBlock(channels, sizes, planes=planes, origin=origin, final_relu=final_relu)
        broadcast = BroadcastConv(channels, sizes, planes=planes, origin=origin, final_relu=final_relu)
        return Broadcasting(channels, broadcast, reduce_to=reduce_to)

    undo: list[Callable[[], None]] = []
    try:
        for place in list(after) if isinstance(after, list | tuple) else [after]:
            undo.append(_insert(model, place, build, image))
    except BcnError:
        for remove in reversed(undo):
            remove()
        raise
    return model


def _insert(
    model: nn.Module, after: Any, build: Callable[[int], Broadcasting], image: Tensor | None
) -> Callable[[], None]:
    """Insert after one submodule, if the model then runs as before; gives what takes it out again."""
    modules = {name: module for name, module in model.named_modules(remove_duplicate=False) if name}
    if after not in modules:
        raise did_you_mean("submodule", str(after), modules)
    place = modules[after]
    if hasattr(place, "broadcast"):
        raise BcnError(f"{after!r} already has something called broadcast: insert after another submodule")
    found = _run_until(place, model, image)
    nhwc = _is_nhwc(found, place, model, image)
    channels = found.shape[3 if nhwc else 1]
    block = build(channels).to(found)
    inserted = (OnNHWC(block) if nhwc else block).train(model.training)
    remove = _attach(place, inserted)
    calls: list[None] = []
    counter = block.register_forward_pre_hook(lambda _, __: calls.append(None))
    failed = _failure(model, image, place)
    counter.remove()
    if len(calls) == 1 and (not failed or block.reduce.out_channels != channels):
        return remove
    remove()
    if len(calls) != 1:
        why = f" ({failed})" if failed else ""
        raise BcnError(
            f"a BCN after {after!r} would run {len(calls)} times when the model runs{why}: "
            "this submodule is called more than once, or goes through its own parts, so insert after another one"
        )
    if not _failure(model, image, model):
        raise BcnError(f"with a BCN after {after!r} the model fails ({failed}): insert after another one")
    return _attach(place, inserted)  # the model fails on such an image without it too


def _attach(place: nn.Module, inserted: nn.Module) -> Callable[[], None]:
    place.add_module("broadcast", inserted)
    hook = None
    if type(place).forward is not nn.Sequential.forward:  # which runs what is added to it by itself
        hook = place.register_forward_hook(_broadcast)

    def remove() -> None:
        del place.broadcast
        if hook is not None:
            hook.remove()

    return remove


class OnNHWC(nn.Module):
    """A block for maps (B, H, W, C)."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block = block

    def forward(self, map_BHWC: Tensor) -> Tensor:
        map_BCHW: Tensor = self.block(map_BHWC.permute(0, 3, 1, 2))
        return map_BCHW.permute(0, 2, 3, 1)


def _is_nhwc(found: Tensor, place: nn.Module, model: nn.Module, image: Tensor | None) -> bool:
    """Whether a map's channels come last: the other two dimensions have the ratio of the image's height and width."""
    image = _empty(model) if image is None else image
    if image.dim() != 4:
        return False

    if _fits(found, 2, image) and _fits(found, 1, image):  # as many channels as rows and columns
        image = image[..., : image.shape[3] // 2]
        try:
            found = _run_until(place, model, image)
        except BcnError:
            return False
    return _fits(found, 1, image) and not _fits(found, 2, image)


def _fits(map: Tensor, dim: int, image: Tensor) -> bool:
    """Whether two dimensions have the ratio of an image's height and width, each rounded by up to one."""
    rows, columns, height, width = *map.shape[dim : dim + 2], *image.shape[2:]
    return bool(abs(rows * width - columns * height) <= max(height, width))


def _broadcast(module: nn.Module, _: Any, output: Tensor) -> Tensor:
    """A plain function that finds the BCN in the module, so that a deep copy runs its own and not the original's."""
    assert isinstance(module.broadcast, nn.Module)
    broadcast: Tensor = module.broadcast(output)
    return broadcast


def _failure(model: nn.Module, image: Tensor | None, trained: nn.Module) -> Exception | None:
    """What goes wrong when the model runs to its end, and back to the parameters of a part of it."""
    try:
        _run(model, image, trained)
    except Exception as error:
        return error
    return None


def _run(model: nn.Module, image: Tensor | None, trained: nn.Module | None = None) -> None:
    """The model as in evaluation, and back to the parameters of a part of it; nothing in it changes."""
    modes = {module: module.training for module in model.modules()}
    try:
        with torch.set_grad_enabled(trained is not None):
            outputs = tree_leaves(model.eval()(_empty(model) if image is None else image))
            losses = [output.sum() for output in outputs if isinstance(output, Tensor) and output.requires_grad]
            parameters = [parameter for parameter in trained.parameters() if parameter.requires_grad] if trained else []
            if losses and parameters:
                torch.autograd.grad(losses, parameters, allow_unused=True)
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
