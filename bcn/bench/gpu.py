"""`bcn bench gpu`: training steps of `fast/multirn-h` on synthetic images and questions, for owners of a GPU to run.

It has to run on the CPU too, where its record is marked as a smoke test: it shows that the benchmark works, no more.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from bcn.bench.jobs import Job
from bcn.bench.measure import alternate
from bcn.bench.peak import required_flops
from bcn.bench.trace import Trace
from bcn.data.clevr_like.synthetic import synthetic_questions
from bcn.data.dataset import Batch
from bcn.paper.tables import find_recipe
from bcn.training.device import find_device
from bcn.training.distributed import Ranks
from bcn.training.interrupts import Stop
from bcn.training.loop import Trainer
from bcn.training.override import override
from bcn.training.prefetch import Prefetch
from bcn.training.progress import Progress
from bcn.training.recipe import Recipe, check
from bcn.training.runtime import Runtime, arithmetic
from bcn.training.splits import Splits

RECIPE = "fast/multirn-h"
QUESTIONS = 10
"""about each image, as CLEVR has"""
STEPS = {"cpu": 1}
"""in a call of what is timed, by kind of device; elsewhere 10, so that the host can run ahead"""
PRODUCT = {"cpu": 1024}
"""the size of the square matrices whose product is the yardstick; elsewhere 8192"""


def bench_gpu(
    *,
    device: str | None = None,
    precision: str | None = None,
    images: int | None = None,
    rounds: int,
    seconds: float,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Steps a second, operators, host waits, memory, and the share of the matmul peak.

    Args:
        device: see `find_device`.
        precision: the recipe's by default.
        images: of a step; by default the recipe's, on the CPU 2.
    """
    place = find_device(device)
    recipe = replace(find_recipe(RECIPE, "paper"), word_embeddings="random")
    size = images or (2 if place.type == "cpu" else recipe.batch_size)
    recipe, _ = override(recipe, [f"batch_size={size}", *([f"precision={precision}"] if precision else [])])
    check(recipe)
    with arithmetic(recipe.precision, deterministic=False):
        steps = Steps(recipe, place)
        with steps.batches:
            say(f"counting a step on {place}")
            steps.run(2)
            with Trace(place.type) as trace:
                steps.run(1)
            say("timing steps, and a matrix product by turns with them")
            reset_peak(place)
            in_a_call = STEPS.get(place.type, 10)
            cases = {"steps": lambda: steps.run(in_a_call), "product": product(recipe, place)}
            times = alternate(cases, rounds=rounds, seconds=seconds)
    flops = required_flops(recipe.model, recipe.batch_size, QUESTIONS)["training"]
    wide = PRODUCT.get(place.type, 8192)
    return {
        "device": torch.cuda.get_device_name(place) if place.type == "cuda" else str(place),
        "smoke_test": place.type == "cpu",
        "recipe": RECIPE,
        "precision": recipe.precision,
        "images": recipe.batch_size,
        "questions": recipe.batch_size * QUESTIONS,
        "steps_per_second": times["steps"].per_second(in_a_call),
        "operators": trace.operators.total(),
        "host_waits": trace.reads.total(),
        "counted_bytes": trace.peak_bytes,
        "allocated_bytes": torch.cuda.max_memory_allocated(place) if place.type == "cuda" else None,
        "gflop_of_a_step": flops / 1e9,
        "product_gflops": times["product"].per_second(2 * wide**3 / 1e9),
        "share_of_matmul_peak": times["steps"].ratio(times["product"], in_a_call * flops / (2 * wide**3)),
    }


class Steps:
    """Steps of a recipe as `bcn train` takes them: batches read ahead, moved, trained."""

    def __init__(self, recipe: Recipe, device: torch.device) -> None:
        data = synthetic_questions(recipe.data.name, images=max(1000, recipe.batch_size))
        splits = Splits(data, None, data, {}, None)
        kept = splits.on_device(device, Runtime().image_limit(device))
        self.trainer = Trainer(recipe, 0, kept, ranks=Ranks(device=device), stop=Stop())
        self.device, self.progress = device, Progress(recipe.name, 1, 0, quiet=True)
        self.batches = Prefetch(self.read, stop=2**62, ahead=device.type != "cpu")

    def read(self, index: int) -> list[Batch]:
        size = self.trainer.recipe.batch_size
        rows = np.arange(index * size, (index + 1) * size) % len(self.trainer.splits.train)
        return self.trainer.read(rows, index, pieces=self.trainer.recipe.accumulate)

    def run(self, count: int) -> None:
        """So many steps, and then wait for the device."""
        for _ in range(count):
            self.trainer.train_batch(self.trainer.stage[0].loss, self.batches, self.progress)
        synchronize(self.device)


def product(recipe: Recipe, device: torch.device) -> Job:
    """A large matrix product in the recipe's precision."""
    size, dtype = PRODUCT.get(device.type, 8192), torch.bfloat16 if recipe.precision == "bf16" else torch.float32
    a, b = (torch.rand(size, size).to(device, dtype) for _ in range(2))

    def multiply() -> None:
        torch.mm(a, b)
        synchronize(device)

    return multiply


def synchronize(device: torch.device) -> None:
    if device.type in ("cuda", "mps"):
        getattr(torch, device.type).synchronize()


def reset_peak(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
