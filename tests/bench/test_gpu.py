"""`bcn bench gpu` on the CPU, where it is a smoke test; on a device of its own it is in tests/training/far."""

import json
from pathlib import Path

import pytest
import torch
from helpers.command import exit_code, invoke_bcn

from bcn.bench.measure import Timing
from bcn.bench.trace import Trace


def test_the_record_says_that_it_is_a_smoke_test(tmp_path: Path) -> None:
    out = tmp_path / "gpu.json"
    command = ("bench", "gpu", "--device", "cpu", "--images", 1, "--precision", "float32", "--rounds", 1)
    said = invoke_bcn(*command, "--seconds", 0, "--out", out).stderr
    assert "a smoke test on the CPU" in said
    record = json.loads(out.read_text())
    measured = record["measurements"]
    assert (record["benchmark"], measured["smoke_test"], measured["device"]) == ("gpu", True, "cpu")
    assert (measured["precision"], measured["images"], measured["questions"]) == ("float32", 1, 10)
    assert measured["operators"] > 100
    assert measured["counted_bytes"] > 24 * 64 * 64 * 4  # the first map of the CNN
    step, product = (measured[name]["median"] for name in ("steps_per_second", "product_gflops"))
    assert measured["share_of_matmul_peak"]["median"] == pytest.approx(
        step * measured["gflop_of_a_step"] / product, rel=1e-6
    )
    forward = measured["gflop_of_a_step"] / 2 / 3 * 1e9
    assert forward > 10 * 256 * 256 * 256  # g's second layer alone, for 10 questions about 256 objects


@pytest.mark.parametrize("words", [("--precision", "fp8"), ("--device", "cuda:99"), ("--images", 100_000)])
def test_what_it_refuses(words: tuple[str, object], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("bench", "gpu", "--device", "cpu", *words, "--out", tmp_path / "gpu.json") == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert not (tmp_path / "gpu.json").exists()


def test_operators_reads_and_bytes_are_counted() -> None:
    with Trace("cpu") as trace:
        first = torch.zeros(1000)
        second = first + 1
        del first
        third = second.view(10, 100) * 2
        float(third.sum()), third[third > 1], third.nonzero()
    assert trace.operators["aten::add"] == trace.operators["aten::mul"] == 1
    assert trace.operators["aten::view"] == 0
    assert dict(+trace.reads) == {"aten::_local_scalar_dense": 1, "aten::index": 1, "aten::nonzero": 1}
    indices = 1000 * 2 * 8
    assert 8000 + indices <= trace.peak_bytes < 12000 + indices + 4000
    with Trace("cuda") as elsewhere:
        torch.zeros(3).sum().item()
    assert (elsewhere.operators.total(), elsewhere.reads.total(), elsewhere.peak_bytes) == (0, 0, 0)


def test_cpu_time_is_that_of_the_calling_thread() -> None:
    timing = Timing((4.0, 6.0), (1.0, 2.0))
    assert timing.of_cpu().milliseconds()["median"] == 1500
    assert timing.of_cpu().ratio(Timing((9.0, 9.0), (3.0, 6.0)).of_cpu())["median"] == 3
