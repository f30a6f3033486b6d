"""The sum over objects in chunks: the same sums and gradients, in bytes that do not grow with the number of pairs."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from bcn.layers import chunks
from bcn.layers.broadcast import BroadcastConv
from bcn.layers.relation import MultiRelation, PairRelation


class LiveBytes(TorchDispatchMode):
    """The most bytes that tensors made within it held at a time; the meta device's count as if they were real."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.storages: dict[int, tuple[StorageWeakRef, int]] = {}
        self.peak = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.storages = {key: kept for key, kept in self.storages.items() if not kept[0].expired()}
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor):
                storage = leaf.untyped_storage()
                self.storages[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())
        self.peak = max(self.peak, sum(size for _, size in self.storages.values()))
        return result


def peak_bytes(side: int, *, images: int = 1, questions: int = 4) -> int:
    with torch.device("meta"):
        relation = PairRelation(24, 256)
        image, question = torch.empty(images, 24, side, side), torch.empty(images, questions, 256)
        image.requires_grad_()
        with LiveBytes() as live:
            relation(image, question).sum().backward()
    return live.peak


def test_memory_does_not_grow_with_the_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """RN on 64 objects, and on the 256 of CNN_h, where the paper ran out of memory."""
    few, more, most = peak_bytes(8), peak_bytes(16), peak_bytes(24)
    assert max(few, more, most) < 450e6  # 4,096, 65,536 and 331,776 pairs, for four questions
    assert most < 1.1 * more
    assert few < more < 5 * few
    monkeypatch.setattr(chunks, "CHUNK_ROWS", 2**40)
    assert peak_bytes(16) >= 15 * peak_bytes(8)


@pytest.mark.parametrize("rows", [7, 60, 200, 10**6])
@pytest.mark.parametrize("kind", ["pairs", "objects", "objects without a BCN"])
def test_chunks_add_up_to_the_whole(rows: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    if kind == "pairs":
        relation: Any = PairRelation(6, 5, (16, 16, 8))
    else:
        relation = MultiRelation(6, 5, (16, 8), broadcast=BroadcastConv(6, (8, 8)) if kind == "objects" else None)
    relation.double()
    inputs = torch.rand(3, 6, 4, 3).double().requires_grad_(), torch.rand(3, 4, 5).double().requires_grad_()
    expected = relation(*inputs)
    grads = torch.autograd.grad(expected.square().sum(), [*inputs, *relation.parameters()])
    monkeypatch.setattr("bcn.layers.relation.may_fuse", lambda *_, operator: False)
    monkeypatch.setattr(chunks, "CHUNK_ROWS", rows)
    total = relation(*inputs)
    torch.testing.assert_close(total, expected, rtol=1e-10, atol=1e-10)
    for ours, theirs in zip(
        torch.autograd.grad(total.square().sum(), [*inputs, *relation.parameters()]), grads, strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


def test_sums_over_objects_are_in_32_bits() -> None:
    """4,096 objects of about 1 each: bfloat16 cannot add 1 to 256."""
    relation = PairRelation(4, 0, (8, 8))
    with torch.no_grad():
        for layer in relation.g:
            layer.weight.zero_()
            layer.bias.fill_(1.0)
    with torch.autocast("cpu", torch.bfloat16):
        total = relation(torch.zeros(1, 4, 8, 8))
    assert total.dtype == torch.float32
    assert total.unique().tolist() == [4096.0]
