"""`bcn bench runtime`: a trained model here, in eager PyTorch, and exported, in onnxruntime, by turns."""

from collections.abc import Callable
from typing import Any

import torch

from bcn.bench.jobs import Job
from bcn.bench.measure import alternate, threads
from bcn.inference.export import NamedInputs, onnx_content, random_inputs
from bcn.inference.reasoner import Reasoner
from bcn.training.environment import cores, keep_memory

CASES = {"one question": (1, 1), "36 questions about an image": (1, 36), "16 images, 20 questions each": (16, 20)}
"""images, and questions about each"""


def bench_runtime(reasoner: Reasoner, *, rounds: int, seconds: float, say: Callable[[str], None]) -> dict[str, Any]:
    """Milliseconds of a call and of its CPU time in the calling thread, answers per second, and the ratio."""
    keep_memory()
    say(f"exporting {reasoner.name}")
    content, _, difference = onnx_content(reasoner, NamedInputs(reasoner.model), ["logits", "centre"])
    measurements: dict[str, Any] = {"weights": reasoner.name, "difference": difference}
    for count in sorted({1, cores()}):
        say(f"eager and onnxruntime, {count} threads")
        with threads(count):
            measurements[f"{count} thread" + "s" * (count > 1)] = {
                name: _case(reasoner, content, count, images, questions, rounds, seconds)
                for name, (images, questions) in CASES.items()
            }
    return measurements


def _case(
    reasoner: Reasoner, content: bytes, count: int, images: int, questions: int, rounds: int, seconds: float
) -> dict[str, Any]:
    pair = jobs(reasoner, content, count, images, questions)
    times = alternate(pair, rounds=rounds, seconds=seconds)
    return {
        name: {
            "milliseconds": timing.milliseconds(),
            "cpu_milliseconds": timing.of_cpu().milliseconds(),
            "answers_per_second": timing.per_second(images * questions),
        }
        for name, timing in times.items()
    } | {"onnxruntime / eager": times["onnxruntime"].ratio(times["eager"])}


def jobs(reasoner: Reasoner, content: bytes, count: int, images: int, questions: int) -> dict[str, Job]:
    """The same inputs through both, on this many threads."""
    import onnxruntime  # type: ignore[import-untyped]

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = count, 1
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    given = random_inputs(reasoner, images=images, questions=questions)
    feed = {node.name: tensor.numpy() for node, tensor in zip(session.get_inputs(), given, strict=True)}

    @torch.inference_mode()
    def eager() -> object:
        return reasoner.model(*given)

    return {"eager": eager, "onnxruntime": lambda: session.run(None, feed)}
