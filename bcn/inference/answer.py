"""A model's answer: how sure the model is, the runners-up, and the one way to write it as JSON."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    """The most probable answer, with its probability and the other answers."""

    answer: str
    probability: float
    others: tuple[tuple[str, float], ...]
    """the other answers with their probabilities, the most probable first"""
    question: str | None = None
    """as the model understood it; None where no question was asked"""
    centre: tuple[float, float] | None = None
    """x and y from 0 to 1, from left to right and from top to bottom, for models that localise"""
    unknown: tuple[str, ...] = ()
    """words of the question that the model does not know, and had to ignore"""

    @classmethod
    def ranked(
        cls,
        names: Sequence[str],
        probabilities: Sequence[float],
        *,
        question: str | None = None,
        centre: tuple[float, float] | None = None,
        unknown: tuple[str, ...] = (),
    ) -> "Answer":
        """Rank the answers by their probabilities.

        >>> Answer.ranked(("yes", "no"), (0.25, 0.75)).answer
        'no'
        """
        ranking = sorted(zip(names, probabilities, strict=True), key=lambda pair: -pair[1])
        return cls(*ranking[0], tuple(ranking[1:]), question, centre, unknown)

    def to_dict(self, *, runners_up: int | None = None) -> dict[str, Any]:
        """For JSON, with all other answers or only the first `runners_up`; without what the model does not give.

        >>> Answer("yes", 0.75, (("no", 0.25),)).to_dict()
        {'answer': 'yes', 'probability': 0.75, 'others': [{'answer': 'no', 'probability': 0.25}]}
        """
        others = [{"answer": name, "probability": probability} for name, probability in self.others[:runners_up]]
        content: dict[str, Any] = {} if self.question is None else {"question": self.question}
        content |= {"answer": self.answer, "probability": self.probability, "others": others}
        content |= {"unknown": list(self.unknown)} if self.unknown else {}
        return content if self.centre is None else content | {"centre": self.centre}
