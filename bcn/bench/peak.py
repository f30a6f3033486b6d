"""`bcn bench peak`: how close a step of multirn-h comes to the rate of a large matrix product."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from bcn.bench.jobs import inference, product, training
from bcn.bench.measure import alternate, threads
from bcn.models.cost import executed_macs, on_meta
from bcn.models.registry import image_shape
from bcn.training.environment import cores, keep_memory

SIZE = 2048
"""of the square matrices whose product is the yardstick"""
MODEL = "sort-of-clevr/multirn-h"
IMAGES = 16
QUESTIONS = (36, 20)
"""about each image: all, as the recipes at `cpu` scale train, and the paper's"""


def bench_peak(*, rounds: int, seconds: float, say: Callable[[str], None]) -> dict[str, Any]:
    """The fractions at one thread and at all."""
    keep_memory()
    measurements: dict[str, Any] = {}
    for count in sorted({1, cores()}):
        say(f"the fraction of the matmul peak, {count} threads")
        with threads(count):
            measurements[f"{count} thread" + "s" * (count > 1)] = {
                f"{questions} questions": fraction_of_matmul_peak(questions, rounds, seconds) for questions in QUESTIONS
            }
    return measurements


def fraction_of_matmul_peak(questions: int, rounds: int, seconds: float) -> dict[str, Any]:
    """Required FLOPs per second, as a fraction of the rate of a large matrix product.

    Products with zero count as required, so the fraction of a trained network can be more than 1. The second fraction
    is of CPU time of the calling thread, which other processes do not lengthen.
    """
    cases = {
        "training": training(MODEL, "ours", IMAGES, questions),
        "inference": inference(MODEL, "ours", IMAGES, questions),
        "training, trained": training(MODEL, "trained", IMAGES, questions),
        "inference, trained": inference(MODEL, "trained", IMAGES, questions),
        "product": product(SIZE),
    }
    times = alternate(cases, rounds=rounds, seconds=seconds)
    required = required_flops(MODEL, IMAGES, questions)
    measurements: dict[str, Any] = {"product_gflops": times["product"].per_second(2 * SIZE**3 / 1e9)}
    for name in cases:
        if name != "product":
            flops = required[name.removesuffix(", trained")]
            measurements[name] = {
                "gflop": flops / 1e9,
                "milliseconds": times[name].milliseconds(),
                "fraction": times[name].ratio(times["product"], flops / (2 * SIZE**3)),
                "cpu_fraction": times[name].of_cpu().ratio(times["product"].of_cpu(), flops / (2 * SIZE**3)),
            }
    return measurements


def required_flops(name: str, images: int, questions: int) -> dict[str, float]:
    """FLOPs of the matrix products and convolutions of a batch, two for a multiply-accumulate.

    The backward pass needs each product twice more, for the gradients of its two factors, but not of the image.
    """
    model, size = on_meta(name), image_shape(name)
    forward = images * questions * executed_macs(model, size, questions=questions).total
    first = next(module for module in model.modules() if isinstance(module, nn.Conv2d))
    height, width = first(torch.empty(1, *size, device="meta")).shape[-2:]
    of_image = images * first.weight.numel() * height * width
    return {"inference": 2 * forward, "training": 2 * (3 * forward - of_image)}
