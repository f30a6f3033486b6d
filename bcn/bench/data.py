"""How fast the generators are: each against a plain loop over the same specification, by turns in one process.

Seconds are CPU time, which other work on the machine changes little.
"""

import time
from collections.abc import Callable
from pathlib import Path
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
    """Whole batches of samples from nothing but the seed: scene, image, 20 questions as bits, 20 answers."""
    import numpy as np

    from bcn.data.random import splitmix64
    from bcn.data.sort_of_clevr.dataset import LEGACY, STREAMS, SortOfClevrStream
    from bcn.data.sort_of_clevr.reference import make_batch
    from bcn.data.sort_of_clevr.samples import SampleGenerator

    number = STREAMS[version][0]
    generator = SampleGenerator(0, number, legacy=version == LEGACY, objects=6, questions="sampled")
    dataset, stream = SortOfClevrStream(version, "train", images, generator), int(splitmix64(0, number))

    def ours(count: int) -> None:
        for first in range(0, count, BATCH):
            dataset[np.arange(first, min(first + BATCH, count))]

    def plain(count: int) -> None:
        for first in range(0, count, BATCH):
            make_batch(version, stream, range(first, min(first + BATCH, count)))

    return compare(version, ours, plain, samples=images, plain_samples=plain_images, rounds=rounds)


def bench_data(
    *, rounds: int = 5, say: Callable[[str], None] = print, data: str | Path | None = None
) -> dict[str, Any]:
    """All generators, and what loading costs of a step of the model that has the cheapest one.

    Args:
        data: where MNIST lies (default: BCN_DATA).
    """
    from bcn.bench.data_mnist import bench_scaled_mnist, loader_fraction
    from bcn.data.mnist.scaled import CANVASES
    from bcn.data.sort_of_clevr import LEGACY, STREAM, V1, make_sort_of_clevr
    from bcn.training.environment import keep_memory

    keep_memory()  # as training does
    measurements: dict[str, Any] = {}
    for version in (V1, LEGACY):
        say(version)
        measurements[version] = bench_sort_of_clevr(version, rounds=rounds)
    for name in CANVASES:
        say(name)
        measurements[name] = bench_scaled_mnist(name, rounds=rounds, data=data)
    for version in (V1, STREAM):
        say(f"loading {version}")
        dataset = make_sort_of_clevr(version, "train", images=1000)
        measurements[f"loading {version}"] = loader_fraction(dataset, "sort-of-clevr/mlp", rounds=rounds)
    return measurements
