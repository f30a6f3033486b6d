"""Look through a directory of images and questions for what would spoil a training."""

import hashlib
import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bcn.data.clevr.layout import Asked, list_splits, question_file, read_questions
from bcn.data.clevr.make import join_parts
from bcn.data.clevr.vocabulary import tokens
from bcn.errors import BcnError

SHOWN = 5
"""examples of a problem"""


def check_directory(directory: str | Path) -> list[str]:
    """Every problem in a sentence: files missing or unreadable, images in two splits, words and answers not learned.

    Parts of clevr-like-v1 that were made apart are joined first.
    """
    root = Path(directory).expanduser()
    unjoined = join_parts(root)
    if unjoined and not (root / "questions").is_dir():
        return unjoined
    files: dict[str, set[Path]] = {}
    words: dict[str, set[str]] = {}
    answers: dict[str, Counter[str]] = {}
    problems = unjoined
    for split in list_splits(root):
        files[split], words[split], answers[split] = set(), set(), Counter()
        try:
            _read(read_questions(root, split), files[split], words[split], answers[split])
        except BcnError as error:
            problems.append(str(error))
        if not files[split]:
            problems.append(f"{question_file(root, split)} asks nothing in the split {split}")
    problems += _images(root, files)
    training = next((split for split in ("train", "trainA") if split in files), None)
    if training is None:
        return [*problems, f"{root} has no split train: its words and answers could not be learned"]
    once = [answer for answer, count in answers[training].items() if count == 1]
    problems += _some(f"{len(once)} answers are given once only in {training}", once)
    for split in sorted(set(files) - {training}):
        unknown = sorted(words[split] - words[training])
        problems += _some(f"{len(unknown)} words of {split} are not among those of {training}", unknown)
        unseen = sorted(set(answers[split]) - set(answers[training]))
        problems += _some(f"{len(unseen)} answers of {split} are never given in {training}", unseen)
    return problems


def _read(questions: Iterator[Asked], files: set[Path], words: set[str], answers: Counter[str]) -> None:
    for asked in questions:
        files.add(asked.image)
        words.update(tokens(asked.question))
        if asked.answer is not None:
            answers[asked.answer] += 1


def _images(root: Path, files: dict[str, set[Path]]) -> list[str]:
    """Images that are missing, unreadable, or in more than one split, by name or by content."""
    every = sorted(set().union(*files.values()))
    missing = [path for path in every if not (root / path).is_file()]
    present = [path for path in every if (root / path).is_file()]
    unreadable, content = [], defaultdict(set)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, digest in zip(present, pool.map(lambda path: _digest(root / path), present), strict=True):
            if digest is None:
                unreadable.append(path)
                continue
            for split, members in files.items():
                if path in members:
                    content[digest].add((split, path))
    leaks = [sorted(places)[0][1] for places in content.values() if len({split for split, _ in places}) > 1]
    return [
        *_some(f"{len(missing)} images are missing", missing),
        *_some(f"{len(unreadable)} images cannot be read", unreadable),
        *_some(f"{len(leaks)} images are in more than one split", leaks),
    ]


def _digest(path: Path) -> bytes | None:
    """What tells an image from another; None where it cannot be decoded."""
    from PIL import Image

    try:
        with Image.open(path) as image:
            return hashlib.sha256(image.convert("RGB").tobytes()).digest()
    except (OSError, SyntaxError):
        return None


def _some(problem: str, examples: list[str] | list[Path]) -> list[str]:
    """The problem with a few examples, where there are any."""
    if not examples:
        return []
    more = ", ..." if len(examples) > SHOWN else ""
    return [f"{problem}: {', '.join(map(str, examples[:SHOWN]))}{more}"]
