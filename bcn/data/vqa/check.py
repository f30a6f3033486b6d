"""Find what would spoil training in a directory of images and questions."""

import hashlib
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from bcn.data.baselines import guess
from bcn.data.decode import decode_image
from bcn.data.images import find_doubt
from bcn.data.vqa import jsonl
from bcn.data.vqa.layouts import is_own, list_splits, questions_file, read_questions
from bcn.data.vqa.question import Question
from bcn.data.vqa.vocabulary import tokenize
from bcn.errors import BcnError

MAX_EXAMPLES = 5
"""shown of each problem"""


class Problem(str):
    """A problem in a sentence, with its first examples; it knows all of them."""

    examples: tuple[str, ...]

    def __new__(cls, problem: str, examples: Sequence[object] = (), remedy: str = "") -> "Problem":
        shown, more = map(str, examples[:MAX_EXAMPLES]), ", ..." if len(examples) > MAX_EXAMPLES else ""
        self = super().__new__(cls, f"{problem}: {', '.join(shown)}{more}; {remedy}" if examples else problem)
        self.examples = tuple(map(str, examples))
        return self


@dataclass
class Summary:
    """What the questions of a split refer to."""

    files: set[Path] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    answers: Counter[str] = field(default_factory=Counter)
    unanswered: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    asked: dict[tuple[Path, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    """the answers to a question about an image"""
    by_question: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """how often each answer is given to a question, whatever the image"""

    def add(self, question: Question) -> None:
        self.kinds[question.kind or jsonl.OTHER_KIND] += 1
        if question.answer is not None:
            text = " ".join(tokenize(question.text))
            self.asked[question.image, text].append(question.answer)
            self.by_question[text][question.answer] += 1
        self.files.add(question.image)
        self.words.update(tokenize(question.text))
        if question.answer is None:
            self.unanswered += 1
        else:
            self.answers[question.answer] += 1


def describe_questions(root: Path) -> list[str]:
    """What a directory holds, in sentences: amounts, kinds, answers, and how far answers go without the images."""
    splits = (_read_own(root) if is_own(root) else _read_clevr(root))[0]
    lines = []
    for split, summary in sorted(splits.items()):
        questions = sum(summary.kinds.values())
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in summary.kinds.most_common())
        lines.append(f"{split}: {len(summary.files):,} images, {questions:,} questions ({kinds})")
        if total := sum(summary.answers.values()):
            common = ", ".join(f"{answer} {100 * n / total:.0f} %" for answer, n in summary.answers.most_common(5))
            lines.append(f"{split}: {len(summary.answers)} answers, of which {common}")
    learned = next((splits[split] for split in ("train", "trainA") if split in splits), None)
    for split in ("val", "test"):
        if learned is not None and learned.answers and split in splits and splits[split].answers:
            always, per_question = _baselines(learned, splits[split])
            lines.append(
                f"{split}: always the most frequent answer is right for {100 * always:.1f} %, that of the same "
                f"question in training for {100 * per_question:.1f} %: a model has to beat both"
            )
    return lines


def _baselines(learned: Summary, split: Summary) -> tuple[float, float]:
    """The accuracy of the majority answer of training, and of the majority answer to each question there."""
    total = sum(split.answers.values())
    always, per_question = guess(learned.by_question, split.by_question)
    return always / total, per_question / total


def check_questions(root: Path) -> list[str]:
    """Every problem in a sentence: images that are missing, unreadable, blank or twice there, words and answers that
    are not learned, questions that contradict or repeat others."""
    own = is_own(root)
    splits, problems = _read_own(root) if own else _read_clevr(root)
    if not splits:
        return problems or [f"{root / jsonl.FILE} {jsonl.NO_QUESTIONS}"]
    problems += _check_images(root, {split: summary.files for split, summary in splits.items()})
    training = next((split for split in ("train", "trainA") if split in splits), None)
    if training is None:
        return [*problems, f"{root} has no split train: its words and answers could not be learned"]
    if own:
        problems += _check_names(root, splits)
    problems += _check_training(training, splits[training])
    for split, summary in sorted(splits.items()):
        problems += _check_contradictions(split, summary)
        if own:
            problems += _check_repetitions(split, summary)
        problems += _check_answered(split, summary, required=split in (training, "val"))
        if split != training:
            problems += _check_known(split, summary, training, splits[training])
    return problems


def _check_names(root: Path, splits: dict[str, Summary]) -> list[str]:
    """The names of one's own splits."""
    problems = []
    if "val" not in splits:
        problems.append(f'{root} has no split val, by which the best epoch is chosen: give some lines "split": "val"')
    unused = sorted(set(splits) - {"train", "val", "test"})
    return problems + _problem(f"{len(unused)} splits are not used", unused, "call them train, val or test")


def _check_training(split: str, summary: Summary) -> list[str]:
    """Answers of the training split that are rare, or written in several ways."""
    rare = [answer for answer, count in summary.answers.items() if count == 1]
    alike = _alike(summary.answers)
    return [
        *_problem(f"{len(rare)} answers are given once only in {split}", rare, "ask for them more often"),
        *_problem(f"{len(alike)} answers are written in several ways", alike, "write each in one"),
    ]


def _check_contradictions(split: str, summary: Summary) -> list[str]:
    """The same question about the same image with different answers."""
    found = [
        f"{image}: {text}? {' / '.join(sorted(set(answers)))}"
        for (image, text), answers in summary.asked.items()
        if len(set(answers)) > 1
    ]
    return _problem(f"{len(found)} questions of {split} contradict others", found, "give each one answer")


def _check_repetitions(split: str, summary: Summary) -> list[str]:
    """The same question about the same image with the same answer."""
    found = [
        f"{image}: {text}?" for (image, text), answers in summary.asked.items() if len(answers) > len(set(answers))
    ]
    return _problem(f"{len(found)} questions of {split} are asked more than once", found, "keep one of each")


def _check_answered(split: str, summary: Summary, *, required: bool) -> list[str]:
    if summary.unanswered and summary.answers:
        return [f"{summary.unanswered} questions of {split} have no answer: give them one, or take them out"]
    if summary.unanswered and required:
        return [f"no question of {split} has an answer: give them one"]
    return []


def _check_known(split: str, summary: Summary, training: str, learned: Summary) -> list[str]:
    """Words and answers of a split that training does not see."""
    words = sorted(summary.words - learned.words)
    answers = sorted(set(summary.answers) - set(learned.answers))
    return [
        *_problem(f"{len(words)} words of {split} are not among those of {training}", words, "use them there"),
        *_problem(f"{len(answers)} answers of {split} are never given in {training}", answers, "ask for them there"),
    ]


def _read_own(root: Path) -> tuple[dict[str, Summary], list[str]]:
    splits: dict[str, Summary] = defaultdict(Summary)
    broken, tests = [], jsonl.holds_out_test(root)
    for number, line in jsonl.read_lines(root):
        try:
            split, question = jsonl.parse_line(root / jsonl.FILE, number, line, tests=tests)
            splits[split].add(question)
        except BcnError as error:
            broken.append(str(error))
    if (more := len(broken) - MAX_EXAMPLES) > 0:
        rest = Problem(f"{more} more lines of {root / jsonl.FILE} are broken")
        rest.examples = tuple(broken[MAX_EXAMPLES:])
        return splits, [*broken[:MAX_EXAMPLES], rest]
    return splits, broken


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
            broken.append(f"{questions_file(root, split)} has no questions of the split {split}")
    return splits, broken


def _alike(answers: Iterable[str]) -> list[str]:
    """Groups of answers that differ in case and spaces only: "Yes / yes"."""
    groups = defaultdict(list)
    for answer in sorted(answers):
        groups[" ".join(answer.lower().split())].append(answer)
    return [" / ".join(group) for group in groups.values() if len(group) > 1]


def _check_images(root: Path, files: dict[str, set[Path]]) -> list[str]:
    """Images that are missing, unreadable, blank, or twice there, by name or by content."""
    named = sorted(set().union(*files.values()))
    present = [path for path in named if os.path.isfile(root / path)]  # not Path.is_file: names may be too long
    missing = sorted(set(named) - set(present))
    unreadable, doubtful, content = [], [], defaultdict(set)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, seen in zip(present, pool.map(lambda path: _look(root / path), present), strict=True):
            if seen is None:
                unreadable.append(path)
                continue
            digest, doubt = seen
            if doubt is not None:
                doubtful.append(f"{path} ({doubt})")
                continue
            for split, members in files.items():
                if path in members:
                    content[digest].add((split, path))
    leaks, twice = [], []
    for copies in map(sorted, content.values()):
        if len({split for split, _ in copies}) > 1:
            leaks.append(" = ".join(f"{path} ({split})" for split, path in copies))
        elif len(copies) > 1:
            twice.append(" = ".join(str(path) for _, path in copies))
    return [
        *_problem(f"{len(missing)} images are missing", missing, "bring them, or take their questions out"),
        *_problem(f"{len(unreadable)} images cannot be read", unreadable, "save them as PNG or JPEG, with 8 bits"),
        *_problem(f"nothing can be seen in {len(doubtful)} images", doubtful, "take them out, with their questions"),
        *_problem(f"{len(leaks)} images are in more than one split", leaks, "ask about each in one of them"),
        *_problem(f"{len(twice)} images are there more than once", twice, "keep one of each"),
    ]


def _look(path: Path) -> tuple[bytes, str | None] | None:
    """A hash of the pixels, and why nothing can be seen in them, if so; None where the image cannot be decoded."""
    try:
        image = decode_image(path).convert("RGB")
    except (OSError, ValueError):
        return None
    return hashlib.sha256(image.tobytes()).digest(), find_doubt(image)


def _problem(problem: str, examples: list[str] | list[Path], remedy: str) -> list[str]:
    """The problem with its examples, where there are any, and what to do about it."""
    return [Problem(problem, examples, remedy)] if examples else []
