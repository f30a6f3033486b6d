"""Large files compared with their checksums block by block, each when it is first read."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bcn.errors import BcnError

BLOCK_BYTES = 1 << 22


def block_checksums(path: Path, block_bytes: int) -> list[str]:
    """The SHA-256 of each block of a file."""
    with open(path, "rb") as file:
        return [hashlib.sha256(block).hexdigest() for block in iter(lambda: file.read(block_bytes), b"")]


class Blocks:
    """The blocks of a file, each compared once.

    Args:
        remedy: what the error says to do about a block that has changed.
    """

    def __init__(self, path: Path, block_bytes: int, checksums: Sequence[str], *, remedy: str) -> None:
        self.path, self.block_bytes, self.checksums, self.remedy = path, block_bytes, checksums, remedy
        self._content = np.memmap(path, np.uint8, mode="r")
        self._compared = np.zeros(len(checksums), dtype=bool)

    def check(self, first: np.ndarray, last: np.ndarray) -> None:
        """Compare the blocks that hold these ranges of bytes, each from its first byte to its last."""
        low, high = first // self.block_bytes, last // self.block_bytes
        within = [np.arange(start + 1, stop) for start, stop in zip(low, high, strict=True) if stop > start + 1]
        blocks = np.unique(np.concatenate([low, high, *within]))
        for block in blocks[~self._compared[blocks]].tolist():
            start = block * self.block_bytes
            content = self._content[start : start + self.block_bytes]
            if hashlib.sha256(content.data).hexdigest() != self.checksums[block]:
                raise BcnError(
                    f"{self.path} does not have the checksum it was made with at byte {start:,}: {self.remedy}"
                )
            self._compared[block] = True


class BlockCheckedArray(np.memmap):
    """A memory-mapped `.npy` file whose rows, when they are indexed, are compared with the checksums of their blocks.

    A slice is compared as a whole; an array of indices, only with the blocks that hold these rows.
    """

    _blocks: Blocks | None
    """None for what indexing has given, which is compared"""

    @classmethod
    def open(cls, blocks: Blocks) -> "BlockCheckedArray":
        blocks.check(np.zeros(1, np.int64), np.zeros(1, np.int64))  # the header
        array: BlockCheckedArray = np.load(blocks.path, mmap_mode="r").view(cls)
        array._blocks = blocks
        return array

    def __array_finalize__(self, source: Any) -> None:
        super().__array_finalize__(source)
        self._blocks = None

    def __getitem__(self, index: Any) -> Any:
        if self._blocks is not None:
            rows = np.arange(len(self))[index[0] if isinstance(index, tuple) else index]
            first = self.offset + np.atleast_1d(rows).ravel() * self.strides[0]
            self._blocks.check(first, first + self.strides[0] - 1)
        return super().__getitem__(index)
