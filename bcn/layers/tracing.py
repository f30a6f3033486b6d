"""Layers that stay whole under torch.fx, as torch's own do: what they do depends on shapes, and a trace has none."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar, cast

from torch import Tensor, fx, nn

from bcn.errors import BcnError

Module = TypeVar("Module", bound=nn.Module)


def whole_under_fx(forward: Callable[[Module, Tensor], Tensor]) -> Callable[[Module, Tensor], Tensor]:
    """A forward pass of one tensor that every tracer of torch.fx records as one call of its module."""

    @wraps(forward)
    def recorded(self: Module, map_BCHW: Tensor) -> Tensor:
        if not isinstance(map_BCHW, fx.Proxy):
            return forward(self, map_BCHW)
        tracer = map_BCHW.tracer
        assert isinstance(tracer, fx.Tracer)
        if tracer.root is self:
            raise BcnError(f"torch.fx cannot look into {type(self).__name__}: trace a network that it is a part of")
        return cast(Tensor, tracer.create_proxy("call_module", tracer.path_of_module(self), (map_BCHW,), {}))

    return recorded
