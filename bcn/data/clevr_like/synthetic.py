"""Synthetic data in place of a data set that is missing, to measure how long a training step takes.

Questions are those of clevr-like-v2 where they stand for it, otherwise clevr-like-v1's; images are noise.
"""

import numpy as np

from bcn.data.clevr_like.grammars import GRAMMARS
from bcn.data.clevr_like.scene import make_scene
from bcn.data.vqa.clevr import ANSWERS, CLEVR_LIKE, KINDS, kind_of
from bcn.data.vqa.dataset import MAX_QUESTIONS, QuestionDataset
from bcn.data.vqa.sources import SOURCES
from bcn.data.vqa.vocabulary import Vocabulary, tokenize

SCENES = 24


def synthetic_questions(name: str, *, images: int | None = None) -> QuestionDataset:
    """A training split of the usual size, about a few images.

    >>> dataset = synthetic_questions("clevr-v1.0")
    >>> len(dataset), dataset[[0, 1]].answer.shape
    (69000, torch.Size([2, 10]))
    """
    size, make_questions = SOURCES[name].size, GRAMMARS.get(name.removesuffix("-224"), GRAMMARS[CLEVR_LIKE])
    questions_of = [make_questions(make_scene(index), count=MAX_QUESTIONS) for index in range(SCENES)]
    flat = [question for questions in questions_of for question in questions]
    vocabulary = Vocabulary.from_words(word for question in flat for word in tokenize(question["question"]))
    encoded = [vocabulary.encode(question["question"]) for question in flat]
    words = np.zeros((len(flat), max(map(len, encoded))), np.int64)
    for row, numbers in enumerate(encoded):
        words[row, : len(numbers)] = numbers
    counts = np.array([len(questions) for questions in questions_of])
    which = np.arange(images or SOURCES[name].train_images) % SCENES
    return QuestionDataset(
        name=name,
        split="train",
        vocabulary=vocabulary,
        answers=ANSWERS,
        kinds=KINDS,
        image=np.random.default_rng(0).integers(0, 256, (SCENES, 3, size, size), np.uint8),
        question=words,
        answer=np.array([ANSWERS.index(question["answer"]) for question in flat]),
        kind=np.array([KINDS.index(kind_of(question["program"])) for question in flat]),
        question_index=np.arange(len(flat)),
        position=np.arange(len(flat)),
        rows=np.stack([which, (counts.cumsum() - counts)[which], counts[which]], axis=1),
    )
