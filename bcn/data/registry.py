"""Every data set by its name."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from bcn.data import stl10
from bcn.data.cache import cached_parts
from bcn.data.dataset import Dataset
from bcn.data.mnist import affnist, mnist
from bcn.data.mnist import scaled as scaled_mnist
from bcn.data.sort_of_clevr import FEWER, V1, make_sort_of_clevr
from bcn.data.sort_of_clevr import SPLITS as SORT_OF_CLEVR_SPLITS
from bcn.data.sort_of_clevr.samples import Questions
from bcn.data.vqa import named
from bcn.errors import BcnError, did_you_mean
from bcn.io import data_root


@dataclass(frozen=True)
class Request:
    """What is asked of a data set; each takes what it knows."""

    name: str
    split: str
    data: str | Path | None
    images: int | None
    seed: int
    questions: Questions
    size: int | None = None


@dataclass(frozen=True)
class Entry:
    about: str
    origin: Literal["made when opened", "made once", "published"]
    splits: tuple[str, ...]
    open: Callable[[Request], Dataset]
    find: Callable[[str | Path | None], list[Path]] | None = None
    """what is there of the files that it needs, given where the original ones lie; None if it needs none"""
    fetch: Callable[[str | Path | None], list[Path]] | None = None
    """download the files"""
    remedy: str | None = None
    """what to do where the files are missing and cannot be fetched or made by name"""


def _sort_of_clevr(request: Request, version: str | None = None, objects: int = 6) -> Dataset:
    return make_sort_of_clevr(
        version or request.name,
        request.split,
        images=request.images,
        seed=request.seed,
        questions=request.questions,
        objects=objects,
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


def _named(name: str, about: str, origin: Literal["made once", "published"]) -> tuple[str, Entry]:
    def opened(request: Request) -> Dataset:
        return named.open_named(name, request.split, data=request.data, images=request.images, size=request.size)

    def fetch(data: str | Path | None) -> list[Path]:
        if found := named.find_named(name, data):
            return found
        raise BcnError(f"{name}: {named.REMEDIES[name]}")

    find = partial(named.find_named, name)
    return name, Entry(about, origin, named.SPLITS, opened, find, fetch, named.REMEDIES[name])


def _fetch_mnist(data: str | Path | None) -> list[Path]:
    for part in mnist.FILES:
        mnist.fetch_mnist(part, data=data)
    return mnist.find_mnist(data)


def _find_affnist(data: str | Path | None) -> list[Path]:
    places = (affnist.locate_affnist(part, data) for part, _, _ in affnist.AFFNIST_SPLITS.values())
    return [place for place in places if place is not None]


def _find_stl10(data: str | Path | None) -> list[Path]:
    place = stl10.locate_stl10(data)
    return [] if place is None else [place]


def _generated(about: str, opened: Callable[[Request], Dataset] = _sort_of_clevr) -> Entry:
    return Entry(about, "made when opened", SORT_OF_CLEVR_SPLITS, opened)


def _cached(name: str, about: str, splits: tuple[str, ...] = ("test",)) -> tuple[str, Entry]:
    return name, Entry(about, "made once", splits, _scaled_mnist, lambda _: cached_parts(name))


DATASETS: dict[str, Entry] = {
    "sort-of-clevr-v1": _generated("six shapes, 20 questions about them"),
    **{
        name: _generated(f"{objects} shapes by the same rules", partial(_sort_of_clevr, version=V1, objects=objects))
        for objects, name in FEWER.items()
    },
    "sort-of-clevr-stream": _generated("as v1, training on fresh scenes without end"),
    "sort-of-clevr-legacy": _generated("the public generator's rules, faults included"),
    **dict(
        [
            _named("clevr-v1.0", "CLEVR as published, at 128x128", "published"),
            _named("clevr-v1.0-224", "the same at 224x224", "published"),
            _named("clevr-like-v1", "scenes and questions like CLEVR's, 128x128", "made once"),
            _named("clevr-like-v1-224", "the same at 224x224", "made once"),
            _named("own", "a directory of your own, with questions.jsonl", "published"),
        ]
    ),
    "mnist": Entry("digits, 28x28", "published", tuple(mnist.SPLITS), _mnist, mnist.find_mnist, _fetch_mnist),
    **dict(
        [
            _cached("scaled-mnist-v1", "digits 28 to 105 px wide in 128x128", tuple(mnist.SPLITS)),
            _cached("more-scaled-mnist-v1", "digits 28 to 160 px wide in 256x192"),
            _cached("more-scaled-mnist-10-v1", "the same, turned by up to 10 degrees"),
            _cached("more-scaled-mnist-45-v1", "the same, turned by up to 45 degrees"),
        ]
    ),
    "affine-mnist-v1": Entry(
        "digits in 40x40, made with affNIST's ranges", "made when opened", ("test",), _affine_mnist, mnist.find_mnist
    ),
    "affnist": Entry(
        "affine digits in 40x40, as published",
        "published",
        tuple(affnist.AFFNIST_SPLITS),
        _affnist,
        _find_affnist,
        lambda data: [affnist.fetch_affnist(data=data)],
    ),
    "stl10": Entry(
        "photographs of ten classes, 96x96",
        "published",
        tuple(stl10.SPLITS),
        _stl10,
        _find_stl10,
        lambda data: [stl10.fetch_stl10(data=data)],
    ),
}


def list_datasets() -> list[str]:
    return list(DATASETS)


def find_entry(name: str) -> Entry:
    if name not in DATASETS:
        raise did_you_mean("data set", name, DATASETS)
    return DATASETS[name]


def open_dataset(
    name: str,
    split: str,
    *,
    data: str | Path | None = None,
    images: int | None = None,
    seed: int = 0,
    questions: Questions = "sampled",
    size: int | None = None,
) -> Dataset:
    """Open a split of a data set, making, fetching and caching what it needs.

    `data` is where the original files lie (`BCN_DATA` by default), `images` takes the first so many, `seed` decides
    what a generated set holds, `questions` which of Sort-of-CLEVR's are asked about each image, `size` the pixels of a
    side that one's own images are made.
    """
    if data is not None:
        data_root(data)  # a place that is not there is an error, even of sets that need no files
    return find_entry(name).open(Request(name, split, data, images, seed, questions, size))
