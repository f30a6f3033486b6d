"""`bcn bench render`: what an image of clevr-like-v1 costs, part by part, in CPU time, which load changes least."""

import io
import time
from collections.abc import Callable, Iterator
from typing import Any

from bcn.bench.measure import Spread
from bcn.data.clevr_like.questions import make_questions
from bcn.data.clevr_like.render import render_scene, require_tracer
from bcn.data.clevr_like.scene import make_scene


def bench_render(*, images: int, say: Callable[[str], None]) -> dict[str, Any]:
    """CPU milliseconds of each part over so many images of 128x128, after one that compiles the tracer."""
    require_tracer()
    say("compiling the tracer")
    dict(_make(0))
    say(f"{images} images")
    costs = [dict(_make(index)) for index in range(1, images + 1)]
    together = [sum(cost.values()) for cost in costs]
    parts = {part: [cost[part] for cost in costs] for part in costs[0]} | {"together": together}
    return {
        "milliseconds of CPU": {part: Spread.of(each)._asdict() for part, each in parts.items()},
        "images": images,
        "CPU minutes for 10,000 images": 10_000 * sum(together) / images / 60e3,
    }


def _make(index: int) -> Iterator[tuple[str, float]]:
    """Make one image, and say after each part what it cost."""
    from PIL import Image

    began = time.process_time()

    def cost() -> float:
        nonlocal began
        before, began = began, time.process_time()
        return 1e3 * (began - before)

    scene = make_scene(index)
    yield "scene, with visibility checked", cost()
    make_questions(scene)
    yield "ten questions", cost()
    pixels = render_scene(scene)
    yield "path tracing", cost()
    Image.fromarray(pixels).save(io.BytesIO(), format="PNG")
    yield "PNG", cost()
