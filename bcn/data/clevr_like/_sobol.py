# mypy: disable-error-code="untyped-decorator, import-untyped, import-not-found, unused-ignore"
"""Random numbers of the path tracer, compiled by numba: scrambled points of Sobol, and hashes.

numba keeps compiled code by the file of the function that was called, `_tracer.py`: whoever changes this file changes
that one too, or empties `__pycache__`.
"""

from numba import njit, uint32

fast = njit(fastmath=True, cache=True, nogil=True, error_model="numpy")


@fast
def hash32(number):  # type: ignore[no-untyped-def]
    """A hash of 32 bits."""
    number = uint32(number)
    number = uint32(number ^ (number >> uint32(16))) * uint32(0x7FEB352D)
    number = uint32(number ^ (number >> uint32(15))) * uint32(0x846CA68B)
    return uint32(number ^ (number >> uint32(16)))


@fast
def reverse_bits(bits):  # type: ignore[no-untyped-def]
    """The 32 bits in the opposite order."""
    bits = uint32((bits << uint32(16)) | (bits >> uint32(16)))
    bits = uint32(((bits & uint32(0x00FF00FF)) << uint32(8)) | ((bits >> uint32(8)) & uint32(0x00FF00FF)))
    bits = uint32(((bits & uint32(0x0F0F0F0F)) << uint32(4)) | ((bits >> uint32(4)) & uint32(0x0F0F0F0F)))
    bits = uint32(((bits & uint32(0x33333333)) << uint32(2)) | ((bits >> uint32(2)) & uint32(0x33333333)))
    return uint32(((bits & uint32(0x55555555)) << uint32(1)) | ((bits >> uint32(1)) & uint32(0x55555555)))


@fast
def owen_scramble(bits, key):  # type: ignore[no-untyped-def]
    """Owen's scrambling of reversed bits (the hash of Laine and Karras, 2011)."""
    bits = uint32(bits + key)
    bits = uint32(bits ^ uint32(bits * uint32(0x6C50B47C)))
    bits = uint32(bits ^ uint32(bits * uint32(0xB82F1E52)))
    bits = uint32(bits ^ uint32(bits * uint32(0xC7AFE638)))
    return uint32(bits ^ uint32(bits * uint32(0x8D22F6E6)))


@fast
def sobol_pair(key, dimension, sample):  # type: ignore[no-untyped-def]
    """Two numbers in [0, 1): a point of Sobol, order and digits scrambled by pixel and dimension (Burley, 2020).

    Every first 2, 4, 8, ... samples are spread stratified, so that a pixel may stop early.
    """
    a = hash32(uint32(key) + uint32(dimension) * uint32(0x9E3779B9))
    u = reverse_bits(owen_scramble(reverse_bits(uint32(sample)), a))
    v = u
    v = uint32(v ^ (v >> uint32(16)))
    v = uint32(v ^ ((v & uint32(0xFF00FF00)) >> uint32(8)))
    v = uint32(v ^ ((v & uint32(0xF0F0F0F0)) >> uint32(4)))
    v = uint32(v ^ ((v & uint32(0xCCCCCCCC)) >> uint32(2)))
    v = uint32(v ^ ((v & uint32(0xAAAAAAAA)) >> uint32(1)))
    b = hash32(a)
    u, v = reverse_bits(owen_scramble(u, b)), reverse_bits(owen_scramble(v, hash32(b)))
    return u * 2.0**-32, v * 2.0**-32


@fast
def sample_pair(key, stratified, dimension, sample):  # type: ignore[no-untyped-def]
    """Two numbers in [0, 1): of the Sobol sequence, or from a hash, which is cheaper and enough for indirect light."""
    if stratified:
        return sobol_pair(key, dimension, sample)
    a = hash32(uint32(key) + uint32(dimension) * uint32(0x9E3779B9) + uint32(sample) * uint32(0x85EBCA6B))
    return a * 2.0**-32, hash32(a) * 2.0**-32
