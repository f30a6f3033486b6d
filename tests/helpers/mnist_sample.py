"""The first 1,000 test digits of MNIST, which come with the tests, in the place of the whole test set."""

from pathlib import Path

import pytest

from bcn.data.mnist import mnist

SAMPLES = Path(__file__).parent.parent / "samples"
DIGITS = 1000
FILES = (
    mnist.IdxFile(
        "t10k-images-idx3-ubyte",
        (DIGITS, 28, 28),
        "c3379f275b566375ab4528689c1795c4",
        "de7c252b04f05e1f8309634180ccdf286dc6dbac8c579b74e76e02ae0331ca52",
    ),
    mnist.IdxFile(
        "t10k-labels-idx1-ubyte",
        (DIGITS,),
        "1d88dbe1fbee9022616057ede4463181",
        "832c0d20f0dc42e575488c75a83a970787d4c8d4d05831b2ef03701b4a478a90",
    ),
)


def use_mnist_sample(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    """Let `mnist`, and the sets made from its test digits, have the sample's digits; there are no training digits.

    Args:
        cache: an empty directory: one with the whole sets would not fit the sample.
    """
    monkeypatch.setenv("BCN_DATA", str(SAMPLES))
    monkeypatch.setenv("BCN_CACHE", str(cache))
    monkeypatch.setitem(mnist.FILES, "test", FILES)
    monkeypatch.setitem(mnist.SPLITS, "test", ("test", 0, DIGITS))
