"""What every whole data set is known to hold: `Dataset.checksum()` with seed 0, the same on every machine."""

from pathlib import Path

from bcn.data.cache import cached_parts, check_cache
from bcn.data.registry import find_entry, open_dataset
from bcn.errors import BcnError

CHECKSUMS: dict[str, dict[str, str | None]] = {
    "sort-of-clevr-v1": {
        "train": "aca3722124be9dd2f7cd147cb4397a8761f9a190677fe671aaf2e1c39bc9fde4",
        "val": "60133015a2fe9e8f78965b83be373b65dfd41fd2cb97afe87f0c5ab576dfbaef",
        "test": "9c5b6c9c82ab8940228c2cf9a64a71bc809706a2c65eb3140b0f6d34f6e27516",
    },
    "sort-of-clevr-stream": {
        "train": "29bba09d23e6f3de9779c807f57e2d971da8d76f0e196c9b085cb9d6a325d922",
    },
    "sort-of-clevr-legacy": {
        "train": "9e6e3b244f4c71743786e0acf6907a92b4e040b3b71f8a47afe564b381069d2f",
        "val": "76196ead97cc0780dcfd977da6e6cd0dfdb5a0aa3d5106e79c7a263a7f40b6b6",
        "test": "fe21bb894d3665c115039e721829f4d2c86ebe957f3f50c405c014e536f6fc33",
    },
    "clevr-v1.0": {},
    "clevr-v1.0-224": {},
    "clevr-like-v1": {},
    "clevr-like-v1-224": {},
    "own": {},
    "mnist": {
        "train+val": "d18cfd466eb143ac1097fde604dba9eec4116885869d04cc648b510949f9e88c",
        "test": "a0863a96c44e5666edbb30c4071ee79ca0514c621e6349c5967fc78e7305c891",
    },
    "scaled-mnist-v1": {
        "train+val": "62a0f64b9c496e0cda1a48ad50aca2df50f7da9792fa1b336fbccc754ad05c05",
        "test": "fa09bc951eab0f0ae9b0becf3bab30994b8c8ff57504ba730dc3e3958c8f0c5b",
    },
    "more-scaled-mnist-v1": {
        "test": "06905f8670e14e165eb4e7980611a48a999f837a68fc8c817d71e5455e6834d6",
    },
    "more-scaled-mnist-10-v1": {
        "test": "88f0bcefc8e938482a7d7596312906f8edad4e51d8a801a31544a297d3c362ed",
    },
    "more-scaled-mnist-45-v1": {
        "test": "aaf3beb1c4f21529b83000797bd9465e48769b0cff5134e143faff62b75424b8",
    },
    "affine-mnist-v1": {
        "test": "cc3c2c0c09330ae20f4bff6ef8754cfe3c87b0c15650dcd57ae100d1b5439ec1",
    },
    "affnist": {
        "test": None,
    },
    "stl10": {
        "train+val": "ef20038ee1d7c2f1accf13c3a219004cdabddfa8ec5d453cf8525bb94aef1de2",
        "test": "713ddb8a9bbdadb2d8bed32b306f3bd06d8bc5e505b97dedc741e84a80bf2ce1",
    },
}


def check_dataset(name: str, split: str, *, data: str | Path | None = None) -> str:
    """Open a split, which checks the files it comes from, compare what it gives with what is known, and say so."""
    dataset = open_dataset(name, split, data=data)
    found, known = dataset.checksum(), CHECKSUMS[name][split]
    if known is None:
        return f"{len(dataset):,} images can be read; no checksum is published"
    if found != known:
        raise BcnError(
            f"{name} {split} gives images with sha256 {found} where {known} is known: "
            "this is another version of the data than the results were made with"
        )
    return f"{len(dataset):,} images, sha256 {found}"


def checked_splits(name: str) -> list[str]:
    """The splits with a known checksum; of a set that is made once, those that were made, with seed 0."""
    if find_entry(name).origin != "made once":
        return list(CHECKSUMS[name])
    made = {part.name for part in cached_parts(name)}
    return [split for split in CHECKSUMS[name] if f"{split.removesuffix('+val')}-seed0" in made]


def check_files(name: str) -> None:
    """Compare the cached files of a data set with the checksums they were made with."""
    for part in cached_parts(name):
        check_cache(name, part.name)
