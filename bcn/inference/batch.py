"""Many questions about many images: what `bcn predict` asks, and the CSV or JSONL that it writes."""

import csv
import json
from collections.abc import Iterator, Sequence
from glob import glob
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from bcn.data.vqa import jsonl
from bcn.data.vqa.layouts import is_own, list_splits, read_questions
from bcn.data.vqa.vocabulary import tokenize
from bcn.errors import BcnError
from bcn.inference.reasoner import Reasoner
from bcn.io import atomic_write


class ImageQuestion(NamedTuple):
    image: str
    """the path of a file"""
    question: str


class AnsweredQuestion(NamedTuple):
    """A row of the file that is written."""

    image: str
    question: str
    answer: str
    probability: float
    runner_up: str
    """the second most probable answer; empty where there is only one"""
    runner_up_probability: float


def questions_of_folder(folder: Path, split: str | None = None) -> list[ImageQuestion]:
    """The questions of a folder, in the order of its files.

    Args:
        folder: in one's own layout, whose questions need no answers, or in CLEVR's.
        split: only its questions (default: all).
    """
    if split is None and is_own(folder):
        questions = [question for _, question in jsonl.read_own(folder)]
    else:
        splits = [split] if split else list_splits(folder)
        questions = [question for each in splits for question in read_questions(folder, each)]
    if not questions:
        raise BcnError(f"{folder} has no questions of the split {split}: it has {', '.join(list_splits(folder))}")
    return [ImageQuestion(str(folder / question.image), question.text) for question in questions]


def questions_about(pattern: str, file: Path) -> list[ImageQuestion]:
    """Every question of a text file, one in a line, about every image.

    Args:
        pattern: of image files, as a shell takes it: "photos/*.jpg", ** for all folders below.
    """
    if not (images := sorted(path for path in glob(pattern, recursive=True) if Path(path).is_file())):
        raise BcnError(f"--images {pattern}: no file has such a name; write the pattern in quotes")
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BcnError(f"cannot read {file}: {error}; give a text file with a question in every line") from error
    if not (questions := [line.strip() for line in lines if tokenize(line)]):
        raise BcnError(f"{file} has no questions: give a text file with a question in every line")
    return [ImageQuestion(image, question) for image in images for question in questions]


def answer_all(reasoner: Reasoner, asked: Sequence[ImageQuestion]) -> Iterator[AnsweredQuestion]:
    """Answer questions in their order; those that follow each other about the same image share a pass over it."""
    for image, group in groupby(asked, key=lambda each: each.image):
        questions = [each.question for each in group]
        for question, answer in zip(questions, reasoner.ask(image, questions), strict=True):
            runner_up, probability = answer.others[0] if answer.others else ("", 0.0)
            yield AnsweredQuestion(image, question, answer.answer, answer.probability, runner_up, probability)


def check_answers_file(path: Path) -> None:
    """Refuse a file that `write_answers` cannot write."""
    if path.suffix not in (".csv", ".jsonl"):
        raise BcnError(f"--out {path}: give a name that ends in .csv or .jsonl")


def write_answers(rows: Iterator[AnsweredQuestion], path: Path) -> int:
    """Write a row for each answer, and return how many there are."""
    count = 0
    with atomic_write(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if path.suffix == ".csv":
            writer.writerow(AnsweredQuestion._fields)
        for row in rows:
            rounded = row._replace(
                probability=round(row.probability, 6), runner_up_probability=round(row.runner_up_probability, 6)
            )
            if path.suffix == ".csv":
                writer.writerow(rounded)
            else:
                file.write(json.dumps(rounded._asdict(), ensure_ascii=False) + "\n")
            count += 1
    return count
