"""Random draws that are the same on every machine: raw bits of Philox, a counter-based generator, and whole numbers.

numpy keeps the raw bits of a bit generator for ever, but not what the methods of `Generator` make of them.
"""

import hashlib

import numpy as np

from bcn.data.bits import words
from bcn.errors import BcnError


def raw_bits(count: int, width: int, *, seed: int, stream: str) -> np.ndarray:
    """(count, width) numbers of 32 random bits, held in int64; row i depends on seed, stream and i alone."""
    if not 0 <= seed < 2**63:
        raise BcnError(f"seed {seed} is not accepted: give a whole number from 0 to 2^63 - 1")
    name = int.from_bytes(hashlib.sha256(stream.encode()).digest()[:8], "little")
    words = np.random.Philox(key=seed + (name << 64)).random_raw(count * width)
    return (np.asarray(words, dtype=np.uint64) >> np.uint64(32)).astype(np.int64).reshape(count, width)


def between(bits: np.ndarray, low: np.ndarray | int, high: np.ndarray | int) -> np.ndarray:
    """A whole number from `low` to `high`, both included, for each number of 32 random bits.

    >>> between(np.array([0, 2**31, 2**32 - 1]), 10, 19).tolist()
    [10, 15, 19]
    """
    return low + (bits * (high - low + 1) >> 32)


def permutation(count: int, *, seed: int, epoch: int) -> np.ndarray:
    """The order of the samples in one epoch: that in which sorting puts the words of a stream of their own.

    >>> permutation(5, seed=0, epoch=0)
    array([2, 0, 3, 1, 4])
    """
    return np.argsort(words(words(seed, epoch), np.arange(count)), kind="stable")
