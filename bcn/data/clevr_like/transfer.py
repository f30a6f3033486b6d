"""Original images of CLEVR with questions of our grammar about their scenes, for models trained on our images alone.

The original questions are not needed: `scenes/CLEVR_<split>_scenes*.json` and the images of some scenes suffice.
"""

import json
from pathlib import Path
from typing import Any

from bcn.data.clevr_like.grammars import find_grammar
from bcn.data.clevr_like.scene_files import read_scenes
from bcn.data.vqa.clevr import CLEVR_LIKE, find_clevr_like
from bcn.data.vqa.dataset import QuestionDataset
from bcn.data.vqa.load import open_questions
from bcn.data.vqa.vocabulary import Vocabulary
from bcn.errors import BcnError
from bcn.io import atomic_write, cache_root, data_root

FOLDERS = ("clevr", "CLEVR_v1.0", ".")


def find_originals(data: str | Path | None = None, split: str = "val") -> dict[Path, dict[str, Any]]:
    """The original images of a split that exist, each with its scene."""
    root = data_root(data)
    files = [file for folder in FOLDERS for file in sorted((root / folder).glob(f"scenes/CLEVR_{split}_scenes*.json"))]
    for file in files:
        if version := find_clevr_like(file):
            raise BcnError(f"{file} is of {version}, not of original images: ask about its images with `bcn eval`")
        folder = file.parent.parent.resolve() / "images" / split
        scenes = {folder / scene["image_filename"]: scene | {"split": split} for scene in read_scenes(file)}
        if existing := {path: scene for path, scene in scenes.items() if path.is_file()}:
            return existing
    raise BcnError(
        f"{root} has no CLEVR images of the split {split} with their scenes: give with --data or BCN_DATA a "
        f"directory that holds scenes/CLEVR_{split}_scenes.json and images/{split}, itself or in "
        f"{' or '.join(FOLDERS[:2])}"
    )


def open_transfer(
    *,
    words: tuple[str, ...],
    answers: tuple[str, ...],
    data: str | Path | None = None,
    split: str = "val",
    size: int = 128,
    questions: int = 40,
    grammar: str = CLEVR_LIKE,
) -> QuestionDataset:
    """The original images that exist, each with questions, in the words and answers of a model.

    Args:
        questions: about each image.
        grammar: whose questions, clevr-like-v1's or clevr-like-v2's.
    """
    make_questions, name = find_grammar(grammar), grammar.replace("like", "transfer")
    originals = find_originals(data, split)
    entries = [question for scene in originals.values() for question in make_questions(scene, count=questions)]
    directory = cache_root() / name / "made"
    path, text = (
        directory / "questions" / f"CLEVR_{split}_questions.json",
        json.dumps({"info": {}, "questions": entries}),
    )
    if not path.is_file() or path.read_bytes() != text.encode():
        with atomic_write(path) as temporary:
            temporary.write_bytes(text.encode())
    dataset = open_questions(
        directory,
        split,
        size=size,
        vocabulary=Vocabulary(words),
        answers=answers,
        image_root=next(iter(originals)).parents[2],
    )
    dataset.name = name
    return dataset
