"""How far answers go without looking at the image: two guesses from the answers of the training split.

B rows of a batch, Q questions of a row.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from bcn.data.dataset import IGNORE_INDEX, Dataset

BATCH = 256
"""rows at a time"""


def guess(learned: Mapping[Any, Counter[Any]], asked: Mapping[Any, Counter[Any]]) -> tuple[int, int]:
    """How many answers are right: always the most frequent one; and the most frequent one to the same question.

    A question that was never learned is answered as all are.

    Args:
        learned: how often each answer was given to a question in training.
        asked: how often each answer is right.

    >>> learned = {"how many?": Counter({"2": 3, "1": 1}), "is it red?": Counter({"no": 2})}
    >>> guess(learned, {"is it red?": Counter({"no": 4, "yes": 1}), "is it?": Counter({"2": 1})})
    (1, 5)
    """
    majority = sum(learned.values(), Counter()).most_common(1)[0][0]
    always = per_question = 0
    for question, answers in asked.items():
        always += answers[majority]
        per_question += answers[learned[question].most_common(1)[0][0] if question in learned else majority]
    return always, per_question


def count_answers(dataset: Dataset) -> dict[str, dict[bytes, Counter[int]]]:
    """For each kind of question that is asked, how often each answer is right for a question, whatever the image.

    Without kinds there is the kind "", and where nothing is asked one question, b"".
    """
    counted: dict[str, dict[bytes, Counter[int]]] = defaultdict(lambda: defaultdict(Counter))
    for start in range(0, len(dataset), BATCH):
        batch = dataset[range(start, min(start + BATCH, len(dataset)))]
        answer_BQ = batch.answer.numpy().reshape(len(batch.answer), -1)
        for row, position in np.argwhere(answer_BQ != IGNORE_INDEX).tolist():
            kind = "" if batch.kind is None else dataset.kinds[int(batch.kind[row, position])]
            question = b""
            if batch.question is not None:
                question = np.trim_zeros(batch.question[row, position].numpy(), "b").tobytes()
            counted[kind][question][int(answer_BQ[row, position])] += 1
    return counted
