"""How fast the generators are: each against a plain loop over the same specification, by turns in one process."""

import time
from collections.abc import Callable
from statistics import median
from typing import Any

BATCH = 64
"""images that a generator gives at a time"""


def compare(
    name: str,
    ours: Callable[[int], object],
    plain: Callable[[int], object],
    *,
    samples: int,
    plain_samples: int,
    rounds: int = 5,
) -> dict[str, Any]:
    """Samples per second of two makers, which are called with how many samples to make, by turns, `rounds` times each.

    Medians over the rounds, with the least and the greatest; the speedup is taken round by round.

    >>> sorted(compare("nothing", lambda n: None, lambda n: None, samples=10, plain_samples=1))
    ['name', 'ours', 'plain', 'rounds', 'speedup']
    """
    ours(samples), plain(plain_samples)  # the first call fills caches
    pairs = [(_rate(ours, samples), _rate(plain, plain_samples)) for _ in range(rounds)]
    return {
        "name": name,
        "rounds": rounds,
        "ours": {"samples": samples, **_spread([a for a, _ in pairs])},
        "plain": {"samples": plain_samples, **_spread([b for _, b in pairs])},
        "speedup": _spread([a / b for a, b in pairs]),
    }


def _rate(make: Callable[[int], object], samples: int) -> float:
    start = time.process_time()
    make(samples)
    return samples / (time.process_time() - start)


def _spread(values: list[float]) -> dict[str, float]:
    return {"median": median(values), "min": min(values), "max": max(values)}


def bench_sort_of_clevr(
    version: str, *, images: int = 10_000, plain_images: int = 1000, rounds: int = 5
) -> dict[str, Any]:
    """Whole samples, from the seed to the batch: scene, image, 20 questions as bits, 20 answers."""
    import numpy as np

    from bcn.bench.plain_sort_of_clevr import sample_legacy, sample_v1
    from bcn.data.sort_of_clevr.sets import LEGACY, Generator, SortOfClevrStream

    generator = Generator(version, "train", seed=0, objects=6, questions="sampled")
    dataset = SortOfClevrStream(version, "train", images, generator)
    plain_sample, stream = sample_legacy if version == LEGACY else sample_v1, int(generator.stream)

    def ours(count: int) -> None:
        for _ in dataset.batches(np.arange(count), BATCH):
            pass

    def plain(count: int) -> None:
        for index in range(count):
            plain_sample(stream, index)

    return compare(version, ours, plain, samples=images, plain_samples=plain_images, rounds=rounds)
