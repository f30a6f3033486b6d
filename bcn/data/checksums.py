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
    "sort-of-clevr-v1-2-objects": {
        "train": "4ce70587f2731a48e81a7f19b84e00c64ab8b99106eae2b4480c7e85ea0e0fe1",
        "val": "184111ef2dc0879e2748a3e8125c4de228b50f960e36752f175383141406ae8c",
        "test": "a0de98cc9227b946e9721e31ad80a189c93ac34a8b18d3a6cf66f3d65564c27c",
    },
    "sort-of-clevr-v1-3-objects": {
        "train": "4d959ad83de8e24c190ac935eb5c9a958bc98a64c15c9bb638fa9c689f60fba6",
        "val": "4845046f289aa621b4551274854cd528d3de1018d173275278e8995dea366e62",
        "test": "5561af4a83336585e650823ff6949b5530f1020db5c14dde8dde85cee4985d8d",
    },
    "sort-of-clevr-v1-4-objects": {
        "train": "c6ad56567306a9fc0eb47905df7218ae52dd252286d8ca6797d7a70eb855b005",
        "val": "ea1357d6d6df29354790852e379b2fe0c65ef76ad97d72627c3c41e2de33dcdd",
        "test": "f88c2e23128bbc54f534c828c088173e07b3674ee25180197640eb2aaa32d6e9",
    },
    "sort-of-clevr-v1-5-objects": {
        "train": "d6fd5783074b7de1096894590da9d732e4f1b115c15d463fc4641bc5758e5c66",
        "val": "6e5f500d7f76af1782eebdb514279b64e081ea0a8181bf056bd0df0c518e8881",
        "test": "2c925b2b0cfcc3e885b071a9dba0230a93e4ff0802a66608ef4b824a30be80a8",
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
