"""Random bits that a counter decides: word n of a seed is output n of SplitMix64, whenever it is asked for.

Streams, samples and words are seeded from one another, so that sample 7 needs neither the six before it nor a state:

    stream = word(seed, number of the split)    sample = word(stream, index)    word n = word(sample, n)

N samples, J words of each.
"""

import numpy as np

GAMMA = 0x9E3779B97F4A7C15


def words(seed: int | np.ndarray, number: int | np.ndarray) -> np.ndarray:
    """Output `number` (from 0) of SplitMix64 started at `seed`; both may be arrays, which broadcast.

    >>> hex(words(0, 0)), hex(words(0, 1))
    ('0xe220a8397b1dcdaf', '0x6e789e6aa1b965f4')
    >>> words(np.arange(3)[:, None], np.arange(2)).shape
    (3, 2)
    """
    # at least one dimension, because numpy warns of overflow in scalars only
    z = (np.atleast_1d(number).astype(np.uint64) + np.uint64(1)) * np.uint64(GAMMA)
    z = z + np.asarray(seed, dtype=np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z ^= z >> np.uint64(shift)
        z *= np.uint64(factor)
    z ^= z >> np.uint64(31)
    return z.reshape(np.broadcast_shapes(np.shape(seed), np.shape(number)))


def smallest(key_NJ: np.ndarray, count: int) -> np.ndarray:
    """Draw without replacement: the places of the `count` smallest keys of each row, in rising order of the keys.

    The low six bits of key j are replaced by j, which settles ties, so that J is at most 64.
    """
    place_J = np.arange(key_NJ.shape[1], dtype=np.uint64)
    marked_NJ = (key_NJ & ~np.uint64(63)) | place_J
    marked_NJ.sort(axis=1)
    return (marked_NJ[:, :count] & np.uint64(63)).astype(np.uint8)


def below(bound: int, word: np.ndarray) -> np.ndarray:
    """A number in 0 .. bound - 1 from the high 32 bits of a word: (high * bound) >> 32."""
    return ((word >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32)
