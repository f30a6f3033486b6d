"""A device that is not the CPU, for machines without a GPU: `far:0` computes on the CPU, and refuses to mix.

It is torch's PrivateUse1 backend in Python: a tensor on it is a wrapper around one of the CPU. An operator that gets
tensors of both raises, as CUDA does, and code that looks for a tensor's memory finds none. `Trace` counts what is asked
of the device: operators that are no views, reads by the host, and tensors that the host sends. As on CUDA, a
0-dimensional tensor of the CPU may meet those of the device, and an LSTM is one operator and one more in the backward
pass (`far::cudnn_rnn`). Autograd has to meet the device before its first backward pass, and may not be forked after
that: its tests run in a process of their own.
"""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, ClassVar, Self

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map, tree_map_only
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

FAR = "far"
MOVES = ("aten::_to_copy", "aten::copy_", "aten::_copy_from")
TAKES_BOTH = (*MOVES, "aten::_has_compatible_shallow_copy_type", "far::cudnn_rnn", "far::cudnn_rnn_backward")
"""cuDNN takes the lengths of sentences from the CPU"""
READS = (
    "aten::_local_scalar_dense",
    "aten::bincount",
    "aten::equal",
    "aten::masked_select",
    "aten::nonzero",
    "aten::unique_dim",
    "aten::_unique2",
)
"""what makes the host wait for the device, on CUDA"""
Tensors = list[Tensor]


class FarTensor(Tensor):
    """A tensor that is on `far:0` and has the values of `near`, on the CPU."""

    near: Tensor

    @staticmethod
    def __new__(cls, near: Tensor) -> "FarTensor":
        layout: Any = {"strides": near.stride(), "storage_offset": near.storage_offset(), "dtype": near.dtype}
        made: FarTensor = Tensor._make_wrapper_subclass(cls, near.shape, **layout, device=torch.device(FAR, 0))
        made.near = near
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        return run(func, *args, **(kwargs or {}))


class Trace:
    """Counts what is asked of the device while it is entered."""

    active: ClassVar["Trace | None"] = None

    def __init__(self) -> None:
        self.operators, self.reads, self.uploads = Counter[str](), Counter[str](), Counter[str]()

    def __enter__(self) -> Self:
        Trace.active = self
        return self

    def __exit__(self, *error: object) -> None:
        Trace.active = None

    def note(self, func: Any, args: tuple[Any, ...], *, to_far: bool) -> None:
        name = func._schema.name
        self.operators[name] += not func.is_view
        from_far = any(isinstance(leaf, FarTensor) for leaf in tree_leaves(args))
        target = args[0] if name == "aten::copy_" else None
        to_far = isinstance(target, FarTensor) if target is not None else to_far
        if name in MOVES and not to_far:
            self.reads[name] += 1
        if name in READS or (name in ("aten::index", "aten::index_put_") and _by_mask(args[1])):
            self.reads[name] += 1
        if name in MOVES and to_far and not (from_far and target is None):
            sent = args[1] if target is not None else args[0]
            self.uploads[name] += not isinstance(sent, FarTensor)


def _by_mask(index: Any) -> bool:
    return any(isinstance(each, Tensor) and each.dtype == torch.bool for each in index)


def run(func: Any, *args: Any, **kwargs: Any) -> Any:
    """An operator of torch on the values, with its result where the arguments are, or where it is asked for."""
    name, device, leaves = func._schema.name, kwargs.get("device"), tree_leaves((args, kwargs))
    far = [leaf for leaf in leaves if isinstance(leaf, FarTensor)]
    near = [leaf for leaf in leaves if isinstance(leaf, Tensor) and not isinstance(leaf, FarTensor) and leaf.dim()]
    if far and near and name not in TAKES_BOTH:
        raise RuntimeError(f"{name}: expected all tensors to be on one device, but found some on far:0 and on cpu")
    to_far = bool(far) if device is None else torch.device(device).type == FAR
    if Trace.active is not None:
        Trace.active.note(func, args, to_far=to_far)
    if device is not None:
        kwargs["device"] = torch.device("cpu") if to_far else device
    if name == "aten::copy_" and not isinstance(args[0], FarTensor):
        return args[0].copy_(args[1].near)
    result = func(*tree_map_only(FarTensor, _near, args), **tree_map_only(FarTensor, _near, kwargs))
    owner = {id(tensor.near): tensor for tensor in far}

    def wrap(value: Any) -> Any:
        if not isinstance(value, Tensor) or not to_far:
            return value
        with torch.inference_mode(False):  # a view of a tensor from outside inference mode has to count its versions
            return owner[id(value)] if id(value) in owner else FarTensor(value)

    return tree_map(wrap, result)


def _near(tensor: FarTensor) -> Tensor:
    return tensor.near


class _FarModule:
    """`torch.far`, as `torch.cuda` is."""

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return True

    def current_device(self) -> int:
        return 0

    def device_count(self) -> int:
        return 1

    def _is_in_bad_fork(self) -> bool:
        return False

    def manual_seed(self, seed: int) -> None:
        """It has the CPU's generator."""

    def manual_seed_all(self, seed: int) -> None:
        """It has the CPU's generator."""


@cache
def _register() -> list[object]:
    """Once in a process; what is kept keeps it registered."""
    _setup_privateuseone_for_python_backend(FAR, _FarModule())
    library = torch.library.Library("_", "IMPL")
    library.fallback(run, "PrivateUse1")
    return [library]


def _lstm(data: Tensor, sizes: Tensor, state: Tensors, weights: Tensors, layers: int) -> tuple[Tensor, Tensor, Tensor]:
    return torch.lstm(data, sizes, state, weights, True, layers, 0.0, False, True)


@torch.library.custom_op("far::cudnn_rnn", mutates_args=())
def cudnn_rnn(data: Tensor, sizes: Tensor, state: Tensors, weights: Tensors, layers: int) -> Tensors:
    return [part.clone() for part in _lstm(data, sizes, state, weights, layers)]


@torch.library.custom_op("far::cudnn_rnn_backward", mutates_args=())
def cudnn_rnn_backward(
    grads: Tensors, data: Tensor, sizes: Tensor, state: Tensors, weights: Tensors, layers: int
) -> Tensors:
    def differentiate() -> Tensors:
        leaves = [tensor.detach().requires_grad_() for tensor in (data, *weights)]
        result = _lstm(leaves[0], sizes, state, leaves[1:], layers)
        return list(torch.autograd.grad(result, leaves, grads))

    with ThreadPoolExecutor(1) as thread:  # within an operator autograd is off
        return thread.submit(differentiate).result()


def _backward(ctx: Any, grads: Tensors) -> Any:
    data, sizes, *rest = ctx.saved_tensors
    first, *others = cudnn_rnn_backward(grads, data, sizes, rest[:2], rest[2:], ctx.layers)
    return first, None, [None, None], others, None


def _setup(ctx: Any, inputs: Any, output: Any) -> None:
    data, sizes, state, weights, ctx.layers = inputs
    ctx.save_for_backward(data, sizes, *state, *weights)


cudnn_rnn.register_autograd(_backward, setup_context=_setup)


class _FarFunctions(TorchFunctionMode):
    """An LSTM over packed sentences as one operator; tensors from Python's numbers, made on the CPU and then sent."""

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") == "lstm" and isinstance(args[0], FarTensor):
            data, sizes, state, weights, biases, layers, dropout, _, bidirectional = args
            assert (biases, dropout, bidirectional, sizes.device.type) == (True, 0.0, True, "cpu")
            return tuple(cudnn_rnn(data, sizes, list(state), list(weights), layers))
        kwargs = kwargs or {}
        if func is Tensor.tolist and isinstance(args[0], FarTensor):
            return args[0].cpu().tolist()
        if func is torch.tensor and torch.device(kwargs.get("device") or "cpu").type == FAR:
            return torch.tensor(*args, **(kwargs | {"device": "cpu"})).to(kwargs["device"])
        return func(*args, **kwargs)


@contextmanager
def far_device() -> Iterator[torch.device]:
    """The device, which exists from then on; LSTMs run on it within."""
    _register()
    with _FarFunctions():
        yield torch.device(FAR, 0)
