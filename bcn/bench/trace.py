"""What a step asks of a device, counted as its operators are called: how many, how often the host waits, what it holds.

A GPU runs behind the host, which only has to wait for it where it reads a value; so both are counted, not timed.
"""

from collections import Counter
from typing import Any

from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

READS = {
    f"aten::{name}"
    for name in ("_local_scalar_dense", "bincount", "equal", "masked_select", "nonzero", "unique_dim", "_unique2")
}
"""operators whose result, or the size of it, the host has to know"""


class Trace(TorchDispatchMode):
    """Counts what one kind of device is asked for while it is entered.

    >>> import torch
    >>> with Trace("cpu") as trace:
    ...     total = torch.ones(10).view(2, 5).sum().item()
    >>> dict(trace.operators), dict(trace.reads), trace.peak_bytes
    ({'aten::ones': 1, 'aten::sum': 1, 'aten::_local_scalar_dense': 1}, {'aten::_local_scalar_dense': 1}, 44)

    Args:
        kind: of device, "cuda"; what the host does with tensors of its own is not counted.
    """

    def __init__(self, kind: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kind = kind
        self.operators, self.reads = Counter[str](), Counter[str]()
        """by name; views are no operators, they do nothing on a device"""
        self.peak_bytes = 0
        """the most that tensors made within held at a time"""
        self._storages: dict[int, tuple[StorageWeakRef, int]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result, name = func(*args, **kwargs), func._schema.name
        made = self._on_device(result)
        if not made and not self._on_device((args, kwargs)):
            return result
        if not func.is_view:
            self.operators[name] += 1
        if name in READS or _selects_by_mask(name, args) or _comes_back(name, args, result):
            self.reads[name] += 1
        self._hold(made)
        return result

    def _on_device(self, values: Any) -> list[Tensor]:
        return [each for each in tree_leaves(values) if isinstance(each, Tensor) and each.device.type == self.kind]

    def _hold(self, tensors: list[Tensor]) -> None:
        self._storages = {key: kept for key, kept in self._storages.items() if not kept[0].expired()}
        for tensor in tensors:
            storage = tensor.untyped_storage()
            self._storages[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())
        self.peak_bytes = max(self.peak_bytes, sum(size for _, size in self._storages.values()))


def _selects_by_mask(name: str, args: Any) -> bool:
    """How many elements a mask selects is known to the device alone."""
    if name not in ("aten::index", "aten::index_put_"):
        return False
    return any(
        isinstance(each, Tensor) and not each.is_floating_point() and each.element_size() == 1 for each in args[1]
    )


def _comes_back(name: str, args: Any, result: Any) -> bool:
    """Whether a copy brings values from a device to the host."""
    if name not in ("aten::_to_copy", "aten::copy_"):
        return False
    source = args[1] if name == "aten::copy_" else args[0]
    return bool(result.is_cpu and not source.is_cpu)
