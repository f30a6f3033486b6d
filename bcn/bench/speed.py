"""`bcn bench speed`: how much faster our implementation is than the reference."""

from collections.abc import Callable
from typing import Any

from bcn.bench.allocator import bench_allocator
from bcn.bench.jobs import Form, Job, inference, training
from bcn.bench.measure import alternate, threads
from bcn.bench.memory import peak_memory
from bcn.paper.published import published_rows
from bcn.training.environment import cores, keep_memory

MULTIRN_H = "sort-of-clevr/multirn-h"
IMAGES, QUESTIONS = 16, 36
"""batch size, and all questions about each image, as the recipes at `cpu` scale train"""
PAPER_QUESTIONS = 20
"""about each image in the paper's data set"""

Say = Callable[[str], None]


def bench_speed(*, rounds: int, seconds: float, say: Say) -> dict[str, Any]:
    """Everything at one thread and at all; `say` is told what is being measured."""
    keep_memory()
    measurements: dict[str, Any] = {}
    for count in sorted({1, cores()}):
        with threads(count):
            measurements[f"{count} thread" + "s" * (count > 1)] = {
                part.__name__: part(rounds, seconds, say)
                for part in (training_speed, batched_questions, batch_sizes, table1, table3)
            }
    return measurements | {"allocator": bench_allocator(rounds, say), "memory": memory(say)}


def training_speed(rounds: int, seconds: float, say: Say) -> dict[str, Any]:
    """Training with our implementation and with the reference: answers per second, and ratios.

    Weights are random; "trained" has the shipped ones, which leave most activations zero. A baseline that needs seconds
    for an answer gets few questions at a time; its speed does not depend on it.
    """
    cases: dict[str, tuple[str, Form, int, int]] = {
        "multirn-h": (MULTIRN_H, "ours", IMAGES, QUESTIONS),
        "multirn-h, trained": (MULTIRN_H, "trained", IMAGES, QUESTIONS),
        "multirn-h, reference": (MULTIRN_H, "reference", IMAGES, QUESTIONS),
        "multirn": ("sort-of-clevr/multirn", "ours", IMAGES, QUESTIONS),
        "multirn, trained": ("sort-of-clevr/multirn", "trained", IMAGES, QUESTIONS),
        "multirn, reference": ("sort-of-clevr/multirn", "reference", IMAGES, QUESTIONS),
        "rn": ("sort-of-clevr/rn", "ours", 1, QUESTIONS),
        "rn, reference": ("sort-of-clevr/rn", "reference", 1, QUESTIONS),
        "rn-h": ("sort-of-clevr/rn-h", "ours", 1, 4),
        "rn-h, reference": ("sort-of-clevr/rn-h", "reference", 1, 4),
        "scaled-mnist/bcn": ("scaled-mnist/bcn", "ours", 64, 1),
        "scaled-mnist/bcn, reference": ("scaled-mnist/bcn", "reference", 64, 1),
        "stl10/bcn": ("stl10/bcn", "ours", 64, 1),
        "stl10/bcn, reference": ("stl10/bcn", "reference", 64, 1),
    }
    say("training with our implementation and with the reference")
    times = alternate({name: training(*case) for name, case in cases.items()}, rounds=rounds, seconds=seconds)
    pairs = {
        "multirn-h": ("multirn-h, reference", "rn-h", "rn-h, reference"),
        "multirn-h, trained": ("multirn-h, reference", "rn-h", "rn-h, reference"),
        "multirn": ("multirn, reference", "rn", "rn, reference"),
        "multirn, trained": ("multirn, reference", "rn", "rn, reference"),
        "scaled-mnist/bcn": ("scaled-mnist/bcn, reference",),
        "stl10/bcn": ("stl10/bcn, reference",),
    }
    answers = {name: images * questions for name, (_, _, images, questions) in cases.items()}
    return {
        "answers_per_second": {name: times[name].per_second(answers[name]) for name in cases},
        "ratios": {
            f"{ours} / {baseline}": times[ours].ratio(times[baseline], answers[ours] / answers[baseline])
            for ours, baselines in pairs.items()
            for baseline in baselines
        },
    }


def batched_questions(rounds: int, seconds: float, say: Say) -> dict[str, Any]:
    """All 36 questions about one image in one call and one by one; one question alone."""
    say("questions batched and one by one")
    batched, single = inference(MULTIRN_H, "ours", 1, 36), inference(MULTIRN_H, "ours", 1, 1)

    def one_by_one() -> None:
        for _ in range(36):
            single()

    cases: dict[str, Job] = {"36 batched": batched, "36 one by one": one_by_one, "one": single}
    times = alternate(cases, rounds=rounds, seconds=seconds)
    return {
        "milliseconds": {name: timing.milliseconds() for name, timing in times.items()},
        "ratio": times["36 batched"].ratio(times["36 one by one"]),
    }


def batch_sizes(rounds: int, seconds: float, say: Say) -> dict[str, Any]:
    """Training, answers per second by batch size; the smallest that reaches 90 % of the best."""
    say("batch sizes")
    sizes = (1, 2, 4, 8, 16, 32)
    cases = {str(images): training(MULTIRN_H, "ours", images, QUESTIONS) for images in sizes}
    times = alternate(cases, rounds=rounds, seconds=seconds)
    rates = {name: int(name) * QUESTIONS / timing.median for name, timing in times.items()}
    enough = next(int(name) for name, rate in rates.items() if rate >= 0.9 * max(rates.values()))
    return {"answers_per_second": rates, "smallest_for_90_percent": enough}


def table1(rounds: int, seconds: float, say: Say) -> dict[str, Any]:
    say("the runtimes of table 1")
    return runtimes("scaled_mnist", "scaled-mnist", "baseline", 20, 1, rounds, seconds)


def table3(rounds: int, seconds: float, say: Say) -> dict[str, Any]:
    say("the runtimes of table 3")
    return runtimes("sort_of_clevr", "sort-of-clevr", "mlp", 1, PAPER_QUESTIONS, rounds, seconds)


def runtimes(
    table: str, family: str, baseline: str, images: int, questions: int, rounds: int, seconds: float
) -> dict[str, Any]:
    """Milliseconds for 100 samples, and as multiples of the baseline row, next to the paper's."""
    paper = {name: row["runtime"] for name, row in published_rows(table).items() if "runtime" in row}
    cases = {name: inference(f"{family}/{name}", "ours", images, questions) for name in paper}
    times = alternate(cases, rounds=rounds, seconds=seconds / 4)
    ours = {name: 1e3 * timing.median * 100 / (images * questions) for name, timing in times.items()}
    return {
        name: {
            "milliseconds": ours[name],
            "ratio": ours[name] / ours[baseline],
            "paper_ratio": paper[name] / paper[baseline],
        }
        for name in paper
    }


def memory(say: Say) -> dict[str, int | None]:
    """Bytes at the peak of a training step above the idle process: 4 images with their questions, or 64 images."""
    say("peak memory")
    cases = {
        (name, form): (4, QUESTIONS)
        for name in (MULTIRN_H, "sort-of-clevr/multirn", "sort-of-clevr/rn")
        for form in ("ours", "reference")
    }
    cases |= {(name, form): (64, 1) for name in ("scaled-mnist/bcn", "stl10/bcn") for form in ("ours", "reference")}
    return {
        f"{name}, {form}": peak_memory("training", name, form, str(images), str(questions))
        for (name, form), (images, questions) in cases.items()
    }
