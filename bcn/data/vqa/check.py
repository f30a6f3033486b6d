"""Look through a directory of images and questions for what would spoil a training."""

import hashlib
import os
from collections import Counter, defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from bcn.data.images import to_rgb_or_gray
from bcn.data.vqa import jsonl
from bcn.data.vqa.layouts import is_own, list_splits, questions_file, read_questions
from bcn.data.vqa.question import Question
from bcn.data.vqa.vocabulary import tokenize
from bcn.errors import BcnError

SHOWN = 5
"""examples of a problem"""


@dataclass
class Summary:
    """What the questions of a split show."""

    files: set[Path] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    answers: Counter[str] = field(default_factory=Counter)
    unanswered: int = 0

    def add(self, question: Question) -> None:
        self.files.add(question.image)
        self.words.update(tokenize(question.text))
        if question.answer is None:
            self.unanswered += 1
        else:
            self.answers[question.answer] += 1


def check_questions(root: Path) -> list[str]:
    """Every problem in a sentence: files missing or unreadable, images in two splits, words and answers not learned."""
    own = is_own(root)
    splits, problems = _read_own(root) if own else _read_clevr(root)
    if not splits:
        return problems or [f"{root / jsonl.FILE} {jsonl.NO_QUESTIONS}"]
    problems += _images(root, {split: read.files for split, read in splits.items()})
    training = next((split for split in ("train", "trainA") if split in splits), None)
    if training is None:
        return [*problems, f"{root} has no split train: its words and answers could not be learned"]
    learned = splits[training]
    if own and "val" not in splits:
        problems.append(f'{root} has no split val, by which the best epoch is chosen: give some lines "split": "val"')
    odd = sorted(set(splits) - {"train", "val", "test"}) if own else []
    problems += _some(f"{len(odd)} splits are not used", odd, "call them train, val or test")
    once = [answer for answer, count in learned.answers.items() if count == 1]
    problems += _some(f"{len(once)} answers are given once only in {training}", once, "ask for them more often")
    alike = _alike(learned.answers)
    problems += _some(f"{len(alike)} answers are written in several ways", alike, "write each in one")
    for split, read in sorted(splits.items()):
        if read.unanswered and read.answers:
            problems.append(f"{read.unanswered} questions of {split} have no answer: give them one, or take them out")
        elif read.unanswered and split in (training, "val"):
            problems.append(f"no question of {split} has an answer: give them one")
        if split == training:
            continue
        unknown = sorted(read.words - learned.words)
        problems += _some(
            f"{len(unknown)} words of {split} are not among those of {training}", unknown, "use them there"
        )
        unseen = sorted(set(read.answers) - set(learned.answers))
        problems += _some(
            f"{len(unseen)} answers of {split} are never given in {training}", unseen, "ask for them there"
        )
    return problems


def _read_own(root: Path) -> tuple[dict[str, Summary], list[str]]:
    splits: dict[str, Summary] = defaultdict(Summary)
    broken = []
    for number, line in jsonl.read_lines(root):
        try:
            split, question = jsonl.parse_line(root / jsonl.FILE, number, line)
            splits[split].add(question)
        except BcnError as error:
            broken.append(str(error))
    more = [f"{len(broken) - SHOWN} more lines of {root / jsonl.FILE} are broken"] if len(broken) > SHOWN else []
    return splits, broken[:SHOWN] + more


def _read_clevr(root: Path) -> tuple[dict[str, Summary], list[str]]:
    splits: dict[str, Summary] = {}
    broken = []
    for split in list_splits(root):
        splits[split] = Summary()
        try:
            for question in read_questions(root, split):
                splits[split].add(question)
        except BcnError as error:
            broken.append(str(error))
        if not splits[split].files:
            broken.append(f"{questions_file(root, split)} asks nothing in the split {split}")
    return splits, broken


def _alike(answers: Iterable[str]) -> list[str]:
    """Answers that differ in case and spaces only, all of each together: "Yes / yes"."""
    ways = defaultdict(list)
    for answer in sorted(answers):
        ways[" ".join(answer.lower().split())].append(answer)
    return [" / ".join(several) for several in ways.values() if len(several) > 1]


def _images(root: Path, files: dict[str, set[Path]]) -> list[str]:
    """Images that are missing, unreadable, or in more than one split, by name or by content."""
    every = sorted(set().union(*files.values()))
    present = [path for path in every if os.path.isfile(root / path)]  # not Path.is_file: names may be too long
    missing = sorted(set(every) - set(present))
    unreadable, content = [], defaultdict(set)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, digest in zip(present, pool.map(lambda path: _digest(root / path), present), strict=True):
            if digest is None:
                unreadable.append(path)
                continue
            for split, members in files.items():
                if path in members:
                    content[digest].add((split, path))
    shared = [sorted(places) for places in content.values() if len({split for split, _ in places}) > 1]
    leaks = [" = ".join(f"{path} ({split})" for split, path in places) for places in shared]
    return [
        *_some(f"{len(missing)} images are missing", missing, "bring them, or take their questions out"),
        *_some(f"{len(unreadable)} images cannot be read", unreadable, "save them as PNG or JPEG, with 8 bits"),
        *_some(f"{len(leaks)} images are in more than one split", leaks, "ask about each in one of them"),
    ]


def _digest(path: Path) -> bytes | None:
    """What tells an image from another; None where it cannot be decoded."""
    from PIL import Image

    try:
        with Image.open(path) as image:
            return hashlib.sha256(to_rgb_or_gray(image).convert("RGB").tobytes()).digest()
    except (OSError, SyntaxError, ValueError, RuntimeError, Image.DecompressionBombError):
        return None


def _some(problem: str, examples: list[str] | list[Path], remedy: str) -> list[str]:
    """The problem with a few examples, where there are any, and what to do about it."""
    if not examples:
        return []
    more = ", ..." if len(examples) > SHOWN else ""
    return [f"{problem}: {', '.join(map(str, examples[:SHOWN]))}{more}; {remedy}"]
