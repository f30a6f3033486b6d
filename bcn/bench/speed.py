"""`bcn bench speed`: what our form gains over the literal one, and how close it comes to what matrix products allow."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from bcn.bench.jobs import Form, Job, inference, product, training
from bcn.bench.measure import Timing, alternate, peak_memory, threads
from bcn.models.cost import executed_macs, on_meta
from bcn.models.registry import image_shape
from bcn.paper.tables import published_rows
from bcn.training.environment import cores, keep_memory

SIZE = 2048
MULTIRN_H = "sort-of-clevr/multirn-h"
IMAGES, QUESTIONS = 16, 36
"""images of a batch, and all the questions that there are about each, as the recipes at `cpu` scale train"""
PAPER_QUESTIONS = 20
"""about each image in the paper's data"""

Say = Callable[[str], None]


def bench_speed(*, rounds: int, seconds: float, say: Say) -> dict[str, Any]:
    """Every figure, at one thread and at all; `say` is told what is being measured."""
    keep_memory()
    figures: dict[str, Any] = {}
    for count in sorted({1, cores()}):
        with threads(count):
            figures[f"{count} thread" + "s" * (count > 1)] = {
                part.__name__: part(rounds, seconds, say)
                for part in (forms, share_of_the_limit, questions_together, batches, table1, table3)
            }
    return figures | {"allocator": allocator(rounds, say), "memory": memory(say)}


def forms(rounds: int, seconds: float, say: Say) -> dict[str, Any]:
    """Training in our form and in the literal one: answers per second, and ratios to `sort-of-clevr/multirn-h`, ours.

    All begin as networks do, with random weights; "trained" has the shipped ones, which leave most activations zero.
    A literal rival that needs seconds for an answer is given few at a time; its speed does not depend on it.
    """
    cases: dict[str, tuple[str, Form, int, int]] = {
        "multirn-h": (MULTIRN_H, "ours", IMAGES, QUESTIONS),
        "multirn-h, trained": (MULTIRN_H, "trained", IMAGES, QUESTIONS),
        "multirn-h, literal": (MULTIRN_H, "literal", IMAGES, QUESTIONS),
        "multirn": ("sort-of-clevr/multirn", "ours", IMAGES, QUESTIONS),
        "multirn, trained": ("sort-of-clevr/multirn", "trained", IMAGES, QUESTIONS),
        "multirn, literal": ("sort-of-clevr/multirn", "literal", IMAGES, QUESTIONS),
        "rn": ("sort-of-clevr/rn", "ours", 1, QUESTIONS),
        "rn, literal": ("sort-of-clevr/rn", "literal", 1, QUESTIONS),
        "rn-h": ("sort-of-clevr/rn-h", "ours", 1, 4),
        "rn-h, literal": ("sort-of-clevr/rn-h", "literal", 1, 4),
        "scaled-mnist/bcn": ("scaled-mnist/bcn", "ours", 64, 1),
        "scaled-mnist/bcn, literal": ("scaled-mnist/bcn", "literal", 64, 1),
        "stl10/bcn": ("stl10/bcn", "ours", 64, 1),
        "stl10/bcn, literal": ("stl10/bcn", "literal", 64, 1),
    }
    say("training in our form and in the literal one")
    times = alternate({name: training(*case) for name, case in cases.items()}, rounds=rounds, seconds=seconds)
    pairs = {
        "multirn-h": ("multirn-h, literal", "rn-h", "rn-h, literal"),
        "multirn-h, trained": ("multirn-h, literal", "rn-h", "rn-h, literal"),
        "multirn": ("multirn, literal", "rn", "rn, literal"),
        "multirn, trained": ("multirn, literal", "rn", "rn, literal"),
        "scaled-mnist/bcn": ("scaled-mnist/bcn, literal",),
        "stl10/bcn": ("stl10/bcn, literal",),
    }
    answers = {name: images * questions for name, (_, _, images, questions) in cases.items()}
    return {
        "answers_per_second": {name: times[name].per_second(answers[name]) for name in cases},
        "ratios": {
            f"{ours} / {rival}": times[ours].ratio(times[rival], answers[ours] / answers[rival])
            for ours, rivals in pairs.items()
            for rival in rivals
        },
    }


def share_of_the_limit(rounds: int, seconds: float, say: Say) -> dict[str, Any]:
    """Unavoidable floating-point operations by the time, as a share of the rate of a large matrix product.

    What is multiplied by zero counts as unavoidable, so the share of a trained network can be more than 1.
    """
    figures: dict[str, Any] = {}
    for questions in (QUESTIONS, PAPER_QUESTIONS):
        say(f"the share of the matrix-product limit, {questions} questions about each image")
        cases = {
            "training": training(MULTIRN_H, "ours", IMAGES, questions),
            "inference": inference(MULTIRN_H, "ours", IMAGES, questions),
            "training, trained": training(MULTIRN_H, "trained", IMAGES, questions),
            "inference, trained": inference(MULTIRN_H, "trained", IMAGES, questions),
            "product": product(SIZE),
        }
        times = alternate(cases, rounds=rounds, seconds=seconds)
        needed = unavoidable(MULTIRN_H, IMAGES, questions)
        flops = {name: needed[name.removesuffix(", trained")] for name in cases if name != "product"}
        figures[f"{questions} questions"] = {
            "product_gflops": times["product"].per_second(2 * SIZE**3 / 1e9),
            **{
                name: {
                    "gflop": flops[name] / 1e9,
                    "milliseconds": times[name].milliseconds(),
                    "share": times[name].ratio(times["product"], flops[name] / (2 * SIZE**3)),
                }
                for name in flops
            },
        }
    return figures


def unavoidable(name: str, images: int, questions: int) -> dict[str, float]:
    """Floating-point operations of the matrix products and convolutions of a batch, two for a multiply-accumulate.

    The backward pass needs each product twice more, for the gradients of its two sides; but not of the image.
    """
    model, size = on_meta(name), image_shape(name)
    forward = images * questions * executed_macs(model, size, questions=questions).total
    first = next(module for module in model.modules() if isinstance(module, nn.Conv2d))
    height, width = first(torch.empty(1, *size, device="meta")).shape[-2:]
    of_image = images * first.weight.numel() * height * width
    return {"inference": 2 * forward, "training": 2 * (3 * forward - of_image)}


def questions_together(rounds: int, seconds: float, say: Say) -> dict[str, Any]:
    """All 36 questions about one image at once and one by one; one question alone."""
    say("questions together and one by one")
    together, single = inference(MULTIRN_H, "ours", 1, 36), inference(MULTIRN_H, "ours", 1, 1)

    def one_by_one() -> None:
        for _ in range(36):
            single()

    cases: dict[str, Job] = {"36 together": together, "36 one by one": one_by_one, "one": single}
    times = alternate(cases, rounds=rounds, seconds=seconds)
    return {
        "milliseconds": {name: timing.milliseconds() for name, timing in times.items()},
        "ratio": times["36 together"].ratio(times["36 one by one"]),
    }


def batches(rounds: int, seconds: float, say: Say) -> dict[str, Any]:
    """Training, answers per second, with growing batches; the smallest that reaches 90 % of the best."""
    say("batches")
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
    """Milliseconds for 100 samples, and as multiples of the baseline row, beside the paper's."""
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


def allocator(rounds: int, say: Say) -> dict[str, Any]:
    """Training with freed memory kept, as `bcn train` does, and given back, as is usual; in processes by turns."""
    say("freed memory kept and given back")
    code = (
        "import sys, time, torch; from bcn.bench.jobs import training;"
        "from bcn.training.environment import keep_memory;"
        "torch.set_num_threads(1); sys.argv[1] == 'kept' and keep_memory();"
        "step = training(sys.argv[2], 'ours', 64, 1); step(); step(); began = time.perf_counter();"
        "[step() for _ in range(5)]; print((time.perf_counter() - began) / 5)"
    )

    def seconds(way: str) -> float:
        command = [sys.executable, "-c", code, way, "scaled-mnist/bcn"]
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    found = [(seconds("kept"), seconds("given back")) for _ in range(rounds)]
    kept, given_back = (Timing(times) for times in zip(*found, strict=True))
    return {
        "kept": kept.milliseconds(),
        "given back": given_back.milliseconds(),
        "kept / given back": kept.ratio(given_back),
    }


def memory(say: Say) -> dict[str, int | None]:
    """Bytes at the peak of two training steps above the idle process: 4 images with their questions, or 64 images."""
    say("peak memory")
    cases = {
        (name, form): (4, QUESTIONS)
        for name in (MULTIRN_H, "sort-of-clevr/multirn", "sort-of-clevr/rn")
        for form in ("ours", "literal")
    }
    cases |= {(name, form): (64, 1) for name in ("scaled-mnist/bcn", "stl10/bcn") for form in ("ours", "literal")}
    return {
        f"{name}, {form}": peak_memory("training", name, form, str(images), str(questions))
        for (name, form), (images, questions) in cases.items()
    }
