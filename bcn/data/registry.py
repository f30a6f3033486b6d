"""Every data set by its name: the one list of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from bcn.data import stl10
from bcn.data.cache import cached_parts
from bcn.data.clevr_like import box_dataset
from bcn.data.clevr_like.stream import CLEVR_STREAM, open_stream
from bcn.data.clevr_like.supervision import open_annotated
from bcn.data.dataset import Dataset
from bcn.data.drawn import dataset as drawn
from bcn.data.mnist import affnist, masks, mnist
from bcn.data.mnist.scaled import make_scaled_mnist
from bcn.data.sort_of_clevr import FEWER_OBJECTS, LEGACY, STREAM, V1, make_sort_of_clevr
from bcn.data.sort_of_clevr import SPLITS as SORT_OF_CLEVR_SPLITS
from bcn.data.sort_of_clevr.samples import Questions
from bcn.data.sort_of_clevr_v2 import BY_CORRUPTION, BY_OBJECTS, V2, V2_STREAM, V2_VARIED, make_sort_of_clevr_v2
from bcn.data.sort_of_clevr_v2.legacy import LEGACY_TERNARY, make_legacy_ternary
from bcn.data.vqa import sources as vqa
from bcn.data.vqa.clevr import CLEVR_LIKE_V2
from bcn.errors import did_you_mean
from bcn.io import data_root

Find = Callable[[str | Path | None], list[Path]]


@dataclass(frozen=True)
class Entry:
    about: str
    origin: Literal["generated", "generated once", "published"]
    """made whenever it is opened; made once and kept on disk; or made by others"""
    splits: tuple[str, ...]
    open: Callable[..., Dataset]
    """called with the split, `images`, and those of `open_dataset`'s other arguments that are `options`"""
    options: tuple[str, ...] = ()
    find: Find | None = None
    """which of its files are there, given the data directory; None where it needs no files"""
    fetch: Find | None = None
    """download the files"""
    remedy: str | None = None
    """what to do where the files are missing and can neither be fetched nor made by name"""


def _sort_of_clevr(about: str, version: str, objects: int = 6) -> Entry:
    opened = partial(make_sort_of_clevr, version, objects=objects)
    return Entry(about, "generated", SORT_OF_CLEVR_SPLITS, opened, ("seed", "questions"))


def _sort_of_clevr_v2(about: str, version: str = V2, **options: Any) -> Entry:
    opened = partial(make_sort_of_clevr_v2, version, **options)
    return Entry(about, "generated", SORT_OF_CLEVR_SPLITS, opened, ("seed", "questions"))


def _scaled_mnist(name: str, about: str, splits: tuple[str, ...] = ("test",)) -> tuple[str, Entry]:
    opened = partial(make_scaled_mnist, name)
    return name, Entry(about, "generated once", splits, opened, ("data", "seed"), lambda _: cached_parts(name))


def _vqa(name: str) -> Entry:
    return Entry(
        about=vqa.SOURCES[name].about,
        origin="generated once" if name.startswith("clevr-like") else "published",
        splits=vqa.SPLITS,
        open=partial(open_annotated if vqa.SOURCES[name].train_images else vqa.open_source, name),
        options=("data", "size", "words", "answers"),
        find=partial(vqa.find_source, name),
        fetch=partial(vqa.require_source, name),
        remedy=vqa.SOURCES[name].remedy,
    )


DATASETS: dict[str, Entry] = {
    V1: _sort_of_clevr("six shapes, 20 questions about them", V1),
    **{
        name: _sort_of_clevr(f"{objects} shapes by the same rules", V1, objects)
        for objects, name in FEWER_OBJECTS.items()
    },
    STREAM: _sort_of_clevr("as v1, training on fresh scenes without end", STREAM),
    LEGACY: _sort_of_clevr("the public generator's rules, faults included", LEGACY),
    V2: _sort_of_clevr_v2("2 to 8 shapes; unary, binary and ternary questions"),
    V2_STREAM: _sort_of_clevr_v2("as v2, training on fresh scenes without end", V2_STREAM),
    V2_VARIED: _sort_of_clevr_v2("the same in varied pictures", V2_STREAM, picture="varied"),
    f"{V2}-states": _sort_of_clevr_v2("v2 as sets of object vectors", states=True),
    f"{V2_STREAM}-states": _sort_of_clevr_v2("the stream as sets of object vectors", V2_STREAM, states=True),
    **{
        name: _sort_of_clevr_v2(f"v2 with corrupted pictures: {corruption}", picture=corruption)
        for corruption, name in BY_CORRUPTION.items()
    },
    **{
        name + "-states" * states: _sort_of_clevr_v2(
            f"v2 with {objects} {'object' if objects == 1 else 'objects'}{', as object vectors' * states}",
            objects=objects,
            states=states,
        )
        for states in (False, True)
        for objects, name in BY_OBJECTS.items()
    },
    LEGACY_TERNARY: Entry(
        "legacy with the public generator's ternary questions",
        "generated",
        SORT_OF_CLEVR_SPLITS,
        make_legacy_ternary,
        ("seed", "questions"),
    ),
    **{name: _vqa(name) for name in vqa.SOURCES},
    drawn.NAME: Entry(
        "drawn shapes and letters, questions in English, fresh scenes",
        "generated",
        tuple(drawn.IMAGES),
        drawn.make_drawn,
        ("seed", "words", "answers"),
    ),
    CLEVR_STREAM: Entry(
        "as clevr-like-v2, training on fresh scenes without end",
        "generated",
        vqa.SPLITS,
        open_stream,
        ("data", "words", "answers"),
        partial(vqa.find_source, CLEVR_LIKE_V2),
        partial(vqa.require_source, CLEVR_LIKE_V2),
        vqa.SOURCES[CLEVR_LIKE_V2].remedy,
    ),
    "mnist": Entry(
        "digits, 28x28",
        "published",
        tuple(mnist.SPLITS),
        mnist.open_mnist,
        ("data",),
        mnist.find_mnist,
        mnist.fetch_files,
    ),
    **dict(
        (
            _scaled_mnist("scaled-mnist-v1", "digits 28 to 105 px wide in 128x128", tuple(mnist.SPLITS)),
            _scaled_mnist("more-scaled-mnist-v1", "digits 28 to 160 px wide in 256x192"),
            _scaled_mnist("more-scaled-mnist-10-v1", "the same, turned by up to 10 degrees"),
            _scaled_mnist("more-scaled-mnist-45-v1", "the same, turned by up to 45 degrees"),
        )
    ),
    masks.NAME: Entry(
        "Scaled-MNIST with a class for every pixel",
        "generated once",
        tuple(mnist.SPLITS),
        masks.make_digit_masks,
        ("data", "seed"),
        lambda _: cached_parts(masks.IMAGES),
    ),
    box_dataset.NAME: Entry(
        "images of clevr-like with the boxes of their objects",
        "generated once",
        tuple(box_dataset.SPLITS),
        box_dataset.make_clevr_boxes,
        ("seed",),
        lambda _: cached_parts(box_dataset.NAME),
    ),
    "affine-mnist-v1": Entry(
        "digits in 40x40, made with affNIST's ranges",
        "generated",
        ("test",),
        affnist.make_affine_mnist,
        ("data", "seed"),
        mnist.find_mnist,
    ),
    "affnist": Entry(
        "affine digits in 40x40, as published",
        "published",
        tuple(affnist.AFFNIST_SPLITS),
        affnist.open_affnist,
        ("data",),
        affnist.find_affnist,
        affnist.fetch_affnist,
    ),
    "stl10": Entry(
        "photographs of ten classes, 96x96",
        "published",
        tuple(stl10.SPLITS),
        stl10.open_stl10,
        ("data",),
        stl10.find_stl10,
        stl10.fetch_stl10,
    ),
}


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
    words: Sequence[str] | None = None,
    answers: Sequence[str] | None = None,
) -> Dataset:
    """Open a split of a data set, making, fetching and caching what it needs.

    An argument that a data set has no use for is ignored.

    Args:
        name: one of DATASETS.
        data: the directory of the original files (default: BCN_DATA).
        images: take the first `images` only.
        seed: determines what a generated data set holds.
        questions: which of Sort-of-CLEVR's questions are asked about each image.
        size: width and height of the images of the data sets "own" and "clevr-like-custom".
        words: the vocabulary of a trained model, for questions in words (default: that of the training split).
        answers: the answers of a trained model, for questions in words (default: those of the training split).
    """
    if data is not None:
        data_root(data)  # a directory that does not exist is an error, even of sets that need no files
    arguments = {
        "data": data, "seed": seed, "questions": questions, "size": size, "words": words, "answers": answers,
    }  # fmt: skip
    entry = find_entry(name)
    return entry.open(split, images=images, **{option: arguments[option] for option in entry.options})


def missing_files(name: str, data: str | Path | None = None) -> str | None:
    """What to do about a data set that needs files that are not here; None where nothing is missing."""
    entry = find_entry(name)
    if entry.find is None or entry.find(data):
        return None
    if entry.remedy is not None:
        return entry.remedy
    if entry.origin == "generated once":
        return f"not made yet: `bcn data make {name}`"
    return f"not here: `bcn data fetch {name if entry.fetch else 'mnist'}`"
