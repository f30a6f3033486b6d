"""Random numbers that are the same on every machine, in every version of numpy, for any order of access.

Both generators are counter-based: number n needs neither the numbers before it nor a state. Two are in use because the
published data sets are defined by them bit by bit (`checksums.toml`): Sort-of-CLEVR and the order of samples by
SplitMix64, which is a few lines in any language (docs/reference/sort-of-clevr.md), and Scaled-MNIST and clevr-like by
Philox, whose raw bits numpy guarantees, but not what the methods of `numpy.random.Generator` make of them.

N samples, J words of each.
"""

import hashlib
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from bcn.errors import BcnError

GAMMA = 0x9E3779B97F4A7C15
Item = TypeVar("Item")


def splitmix64(seed: int | np.ndarray, index: int | np.ndarray) -> np.ndarray:
    """Output `index` (from 0) of SplitMix64 started at `seed`: 64 random bits. Both may be arrays, which broadcast.

    Streams, samples and words are seeded from one another:

        stream = splitmix64(seed, split)    sample = splitmix64(stream, index)    word n = splitmix64(sample, n)

    >>> hex(splitmix64(0, 0)), hex(splitmix64(0, 1))
    ('0xe220a8397b1dcdaf', '0x6e789e6aa1b965f4')
    >>> splitmix64(np.arange(3)[:, None], np.arange(2)).shape
    (3, 2)
    """
    # at least one dimension, because numpy warns of overflow in scalars only
    z = (np.atleast_1d(index).astype(np.uint64) + np.uint64(1)) * np.uint64(GAMMA)
    z = z + np.asarray(seed, dtype=np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z ^= z >> np.uint64(shift)
        z *= np.uint64(factor)
    z ^= z >> np.uint64(31)
    return z.reshape(np.broadcast_shapes(np.shape(seed), np.shape(index)))


def sample_without_replacement(key_NJ: np.ndarray, count: int) -> np.ndarray:
    """(N, count) indices of the `count` smallest keys of each row, by rising key.

    The low six bits of key j are replaced by j, which breaks ties, so J is at most 64.
    """
    index_J = np.arange(key_NJ.shape[1], dtype=np.uint64)
    keyed_NJ = (key_NJ & ~np.uint64(63)) | index_J
    keyed_NJ.sort(axis=1)
    return (keyed_NJ[:, :count] & np.uint64(63)).astype(np.uint8)


def integers_below(bound: int, word: np.ndarray) -> np.ndarray:
    """An integer in 0 .. bound - 1 from the high 32 bits of each word: (high * bound) >> 32."""
    return ((word >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32)


def permutation(count: int, *, seed: int, epoch: int) -> np.ndarray:
    """The order of the samples in one epoch: the argsort of a SplitMix64 stream.

    >>> permutation(5, seed=0, epoch=0)
    array([2, 0, 3, 1, 4])
    """
    return np.argsort(splitmix64(splitmix64(seed, epoch), np.arange(count)), kind="stable")


def fresh_indices(count: int, *, seed: int, epoch: int) -> np.ndarray:
    """The indices of one epoch of a stream whose samples never repeat; each seed has 2**32 of its own.

    >>> fresh_indices(3, seed=0, epoch=2)
    array([6, 7, 8])
    """
    if not 0 <= seed < 2**31 or (epoch + 1) * count > 2**32:
        raise BcnError(f"seed {seed}, epoch {epoch}: a stream has seeds below 2**31, each with 2**32 images")
    return (seed << 32) + epoch * count + np.arange(count)


def philox_bits(count: int, width: int, *, seed: int, stream: str) -> np.ndarray:
    """(count, width) numbers of 32 random bits, held in int64; row i depends on seed, stream and i alone."""
    if not 0 <= seed < 2**63:
        raise BcnError(f"seed {seed} is not accepted: give a whole number from 0 to 2^63 - 1")
    words = np.random.Philox(key=seed + (_hash(stream) << 64)).random_raw(count * width)
    return (np.asarray(words, dtype=np.uint64) >> np.uint64(32)).astype(np.int64).reshape(count, width)


def integers_between(bits: np.ndarray, low: np.ndarray | int, high: np.ndarray | int) -> np.ndarray:
    """An integer from `low` to `high`, both included, for each number of 32 random bits.

    >>> integers_between(np.array([0, 2**31, 2**32 - 1]), 10, 19).tolist()
    [10, 15, 19]
    """
    return low + (bits * (high - low + 1) >> 32)


class RandomStream:
    """Scalar random numbers that (seed, split, index) determine; `stream` separates uses, such as scenes and questions.

    >>> RandomStream(0, "train", 7).integer(1000) == RandomStream(0, "train", 7).integer(1000)
    True
    """

    def __init__(self, seed: int, split: str, index: int, *, stream: int = 0) -> None:
        key = np.array([seed, _hash(split)], np.uint64)
        self._philox = np.random.Philox(key=key, counter=np.array([0, 0, stream, index], np.uint64))
        self._buffer: list[int] = []

    def bits(self) -> int:
        """64 random bits."""
        if not self._buffer:  # many at a time, which costs less
            self._buffer = self._philox.random_raw(64)[::-1].tolist()
        return self._buffer.pop()

    def uniform(self, low: float = 0.0, high: float = 1.0) -> float:
        return low + (high - low) * ((self.bits() >> 11) * 2.0**-53)

    def integer(self, count: int) -> int:
        """One of 0 .. count - 1."""
        return int((self.bits() >> 11) * 2.0**-53 * count)

    def choice(self, items: Sequence[Item]) -> Item:
        return items[self.integer(len(items))]


def _hash(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
