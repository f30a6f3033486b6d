"""Every data set by its name."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bcn.data import affnist, mnist, scaled_mnist, stl10
from bcn.data.batch import Dataset
from bcn.data.sort_of_clevr import SPLITS as SORT_OF_CLEVR_SPLITS
from bcn.data.sort_of_clevr import make_sort_of_clevr
from bcn.errors import did_you_mean

Questions = Literal["sampled", "all"]


@dataclass(frozen=True)
class Request:
    """What is asked of a data set; each takes what it knows."""

    name: str
    split: str
    data: str | Path | None
    images: int | None
    seed: int
    questions: Questions


@dataclass(frozen=True)
class Entry:
    about: str
    origin: Literal["generated", "from MNIST", "published"]
    splits: tuple[str, ...]
    open: Callable[[Request], Dataset]


def _sort_of_clevr(request: Request) -> Dataset:
    return make_sort_of_clevr(
        request.name, request.split, images=request.images, seed=request.seed, questions=request.questions
    )


def _mnist(request: Request) -> Dataset:
    return mnist.open_mnist(request.split, data=request.data, images=request.images)


def _scaled_mnist(request: Request) -> Dataset:
    return scaled_mnist.make_scaled_mnist(
        request.name, request.split, data=request.data, images=request.images, seed=request.seed
    )


def _affnist(request: Request) -> Dataset:
    return affnist.open_affnist(request.split, data=request.data, images=request.images)


def _affine_mnist(request: Request) -> Dataset:
    return affnist.make_affine_mnist(request.split, data=request.data, images=request.images, seed=request.seed)


def _stl10(request: Request) -> Dataset:
    return stl10.open_stl10(request.split, data=request.data, images=request.images)


def _more_scaled(rotated: str = "") -> Entry:
    return Entry(f"digits 28 to 160 px wide in 256x192{rotated}", "from MNIST", ("test",), _scaled_mnist)


DATASETS = {
    "sort-of-clevr-v1": Entry("six shapes, 20 questions", "generated", SORT_OF_CLEVR_SPLITS, _sort_of_clevr),
    "sort-of-clevr-stream": Entry(
        "as v1, training on fresh scenes without end", "generated", SORT_OF_CLEVR_SPLITS, _sort_of_clevr
    ),
    "sort-of-clevr-legacy": Entry(
        "the public generator's rules, faults included", "generated", SORT_OF_CLEVR_SPLITS, _sort_of_clevr
    ),
    "mnist": Entry("digits, 28x28", "published", tuple(mnist.SPLITS), _mnist),
    "scaled-mnist-v1": Entry("digits 28 to 105 px wide in 128x128", "from MNIST", tuple(mnist.SPLITS), _scaled_mnist),
    "more-scaled-mnist-v1": _more_scaled(),
    "more-scaled-mnist-10-v1": _more_scaled(", turned up to 10 degrees"),
    "more-scaled-mnist-45-v1": _more_scaled(", turned up to 45 degrees"),
    "affine-mnist-v1": Entry("digits in 40x40, made with affNIST's ranges", "from MNIST", ("test",), _affine_mnist),
    "affnist": Entry("affine digits in 40x40, as published", "published", tuple(affnist.AFFNIST_SPLITS), _affnist),
    "stl10": Entry("photographs of ten classes, 96x96", "published", tuple(stl10.SPLITS), _stl10),
}


def list_datasets() -> list[str]:
    return list(DATASETS)


def open_dataset(
    name: str,
    split: str,
    *,
    data: str | Path | None = None,
    images: int | None = None,
    seed: int = 0,
    questions: Questions = "sampled",
) -> Dataset:
    """Open a split of a data set, making, fetching and caching what it needs.

    `data` is where the original files lie (`BCN_DATA` by default), `images` takes the first so many, `seed` decides
    what a generated set holds, `questions` which of Sort-of-CLEVR's are asked about each image.
    """
    if name not in DATASETS:
        raise did_you_mean("data set", name, DATASETS)
    return DATASETS[name].open(Request(name, split, data, images, seed, questions))
