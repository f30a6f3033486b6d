"""A data set as files that other tools read: Parquet, a folder of images, or tar archives (WebDataset).

Parquet and the folder are what `datasets.load_dataset` of Hugging Face takes, images and classes included; a folder of
classes is torchvision's ImageFolder too.
"""

import io
import json
import shutil
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image
from torch import Tensor

from bcn.data.dataset import Dataset
from bcn.errors import BcnError, install_extra
from bcn.io import atomic_write, make_directory

Row = dict[str, Any]
SHARD = 1000
"""samples of a tar archive"""
READ = 256
"""samples that are read at a time"""


def export_dataset(dataset: Dataset, to: str, out: Path) -> list[Path]:
    """Write a split; gives the files that a reader begins with.

    Args:
        to: one of FORMATS.
        out: the directory, made if it is not there; a split is a part of it, so that several go into one.
    """
    if to not in FORMATS:
        raise BcnError(f"--to {to}: accepted are {', '.join(FORMATS)}")
    if dataset.dense or "box" in dataset[0]:
        kept = "a class for every pixel" if dataset.dense else "boxes"
        raise BcnError(f"{dataset.name} has {kept}, which none of the formats takes: export another one")
    try:
        make_directory(out)
        return FORMATS[to](dataset, out)
    except OSError as error:
        reason = error.strerror or error
        raise BcnError(f"cannot write {out}: {reason}; give a directory with room that can be written") from error


def samples(dataset: Dataset) -> Iterator[tuple[bytes, Row]]:
    """Each image as a PNG, and what is said about it: label and centre, or questions, answers and kinds."""
    for start in range(0, len(dataset), READ):
        for sample in dataset.__getitems__(list(range(start, min(start + READ, len(dataset))))):
            yield _png(sample["image"]), _describe(dataset, sample)


def _png(image_CHW: Tensor) -> bytes:
    pixels, file = image_CHW.permute(1, 2, 0).numpy(), io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels).save(file, format="PNG")
    return file.getvalue()


def _describe(dataset: Dataset, sample: dict[str, Any]) -> Row:
    if "question" not in sample:
        centre = {"centre": sample["centre"].tolist()} if "centre" in sample else {}
        return {"label": int(sample["answer"]), **centre}
    vocabulary = dataset.vocabulary
    asked = [bool(question.any()) for question in sample["question"]]  # the others are padding
    questions = [question for question, given in zip(sample["question"], asked, strict=True) if given]
    answers = [int(answer) for answer, given in zip(sample["answer"], asked, strict=True) if given]
    row: Row = {
        "questions": [" ".join(vocabulary.decode(q)) if vocabulary else dataset.to_sentence(q) for q in questions],
        "answers": [dataset.answers[answer] if answer >= 0 else None for answer in answers],
    }
    if "kind" in sample:
        kinds = [int(kind) for kind, given in zip(sample["kind"], asked, strict=True) if given]
        row["kinds"] = [dataset.kinds[kind] for kind in kinds]
    return row


def write_parquet(dataset: Dataset, out: Path) -> list[Path]:
    """SPLIT.parquet, in the layout of Hugging Face: images as PNG, labels as classes."""
    try:
        import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
        import pyarrow.parquet as pq  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        raise BcnError(f"Parquet needs pyarrow: {install_extra('hub')}") from error
    texts = pa.list_(pa.string())
    types = {
        "image": pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
        "label": pa.int64(), "centre": pa.list_(pa.float32()), "questions": texts, "answers": texts, "kinds": texts,
    }  # fmt: skip
    named = {"image": {"_type": "Image"}, "label": {"_type": "ClassLabel", "names": list(dataset.answers)}}
    named |= {"centre": {"_type": "Sequence", "feature": {"dtype": "float32", "_type": "Value"}}}
    text = {"_type": "Sequence", "feature": {"dtype": "string", "_type": "Value"}}
    columns = ["image", *next(samples(dataset))[1]]
    features = {"info": {"features": {name: named.get(name, text) for name in columns}}}
    schema = pa.schema([(name, types[name]) for name in columns], {"huggingface": json.dumps(features)})
    path, pending = out / f"{dataset.split}.parquet", []
    with atomic_write(path) as temporary, pq.ParquetWriter(temporary, schema) as writer:
        for number, (png, row) in enumerate(samples(dataset)):
            pending.append({"image": {"bytes": png, "path": f"{number:06}.png"}, **row})
            if len(pending) == READ or number == len(dataset) - 1:
                writer.write_table(pa.Table.from_pylist(pending, schema))
                pending = []
    return [path]


def write_imagefolder(dataset: Dataset, out: Path) -> list[Path]:
    """SPLIT/CLASS/000000.png; or SPLIT/000000.png where questions are asked. SPLIT/metadata.jsonl has all else."""
    folder = out / dataset.split
    _refuse_existing(folder)
    with (
        _removed_unless_whole([folder]),
        atomic_write(folder / "metadata.jsonl") as temporary,
        open(temporary, "w", encoding="utf-8") as file,
    ):
        for number, (png, row) in enumerate(samples(dataset)):
            name = f"{number:06}.png"
            if "label" in row:
                name = f"{_file_name(dataset.answers[row['label']])}/{name}"
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(png)
            print(json.dumps({"file_name": name, **row}, ensure_ascii=False), file=file)
    return [folder]


def write_webdataset(dataset: Dataset, out: Path) -> list[Path]:
    """SPLIT-000000.tar and so on: 000000.png, 000000.json and, where there are classes, 000000.cls."""
    _refuse_existing(*out.glob(f"{dataset.split}-*.tar"))  # one of an earlier, longer export would be read with these
    rows, paths = samples(dataset), list[Path]()
    with _removed_unless_whole(paths):
        for shard in range(-(-len(dataset) // SHARD)):
            paths.append(out / f"{dataset.split}-{shard:06}.tar")
            with atomic_write(paths[-1]) as temporary, tarfile.open(temporary, "w") as archive:
                for number in range(shard * SHARD, min((shard + 1) * SHARD, len(dataset))):
                    png, row = next(rows)
                    _add(archive, f"{number:06}.png", png)
                    _add(archive, f"{number:06}.json", json.dumps(row, ensure_ascii=False).encode())
                    if "label" in row:
                        _add(archive, f"{number:06}.cls", str(row["label"]).encode())
    return paths


def _refuse_existing(*paths: Path) -> None:
    for path in paths:
        if path.exists():
            raise BcnError(f"{path} is there already: give another --out, or remove it")


@contextmanager
def _removed_unless_whole(paths: list[Path]) -> Iterator[None]:
    """Remove what the block has written so far, folders or files, where it fails or is interrupted."""
    try:
        yield
    except BaseException:
        for path in paths:
            shutil.rmtree(path, ignore_errors=True)
            path.unlink(missing_ok=True)
        raise


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)  # of the year 1970, so that a data set always gives the same bytes
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def _file_name(label: str) -> str:
    """A class as the name of a folder: within the one of its split, so never "..".

    >>> _file_name("a/b"), _file_name("..")
    ('a_b', '_')
    """
    return "".join(letter if letter.isalnum() or letter in "-_ ." else "_" for letter in label).strip(". ") or "_"


FORMATS: dict[str, Callable[[Dataset, Path], list[Path]]] = {
    "parquet": write_parquet,
    "imagefolder": write_imagefolder,
    "webdataset": write_webdataset,
}
