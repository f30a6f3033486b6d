"""`bcn bench baselines`: what a training step and an answer cost in the models of Sort-of-CLEVR, beside multiRN."""

from collections.abc import Callable
from typing import Any

from bcn.bench.jobs import inference, training
from bcn.bench.measure import Timing, alternate, threads
from bcn.models.registry import list_models

IMAGES, QUESTIONS = 8, 36
"""a batch of the leaderboard"""
SMALLER = {"rn": 8, "rn-states": 2}
"""models of pairs take so many times fewer images at once; their speed does not depend on it"""
LEFT_OUT = ("rn-original", "rn-h")
"""minutes for a step"""
YARDSTICK = "multirn"


def bench_baselines(*, rounds: int, seconds: float, say: Callable[[str], None]) -> dict[str, Any]:
    """CPU milliseconds for one answer on one thread, in training and inference, and how many times multiRN's.

    Everything by turns: on a busy machine the ratio still holds.
    """
    rows = [name.split("/")[1] for name in list_models("sort-of-clevr/")]
    images = {row: IMAGES // SMALLER.get(row, 1) for row in rows if row not in LEFT_OUT}
    measurements: dict[str, Any] = {}
    for kind, job in (("training", training), ("inference", inference)):
        say(f"{kind} of {len(images)} models")
        with threads(1):
            cases = {row: job(f"sort-of-clevr/{row}", "ours", count, QUESTIONS) for row, count in images.items()}
            times = alternate(cases, rounds=rounds, seconds=seconds)
        answers = {
            row: Timing(tuple(each / (count * QUESTIONS) for each in times[row].cpu_rounds))
            for row, count in images.items()
        }
        for row, answer in answers.items():
            measurements.setdefault(row, {})[kind] = {
                "milliseconds": answer.milliseconds(),
                "times multirn": answers[YARDSTICK].ratio(answer),
            }
    return measurements
