"""`bcn bench runtime` runs the same through both, and its record holds what it says. Times are never asserted."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.command import run_bcn
from helpers.small_weights import digit_weights

pytest.importorskip("onnxruntime", reason="needs the extra onnx")
pytest.importorskip("onnxscript", reason="needs the extra onnx")

import bcn
from bcn.bench.runtime import CASES, jobs
from bcn.inference.export import NamedInputs, onnx_content


def test_both_answer_alike() -> None:
    reasoner = bcn.load(digit_weights())
    content, _, _ = onnx_content(reasoner, NamedInputs(reasoner.model), ["logits", "centre"])
    pair: dict[str, Any] = dict(jobs(reasoner, content, 1, 3, 1))
    for mine, exported in zip(pair["eager"](), pair["onnxruntime"](), strict=True):
        assert np.allclose(mine.numpy(), exported, atol=1e-5)


def test_the_record(tmp_path: Path) -> None:
    out = tmp_path / "runtime.json"
    run_bcn("bench", "runtime", "--weights", digit_weights(), "--rounds", 1, "--seconds", 0, "--out", out)
    record = json.loads(out.read_text())
    assert record["benchmark"] == "runtime"
    assert record["measurements"]["difference"] < 1e-4
    for name in CASES:
        measured = record["measurements"]["1 thread"][name]
        times = {part: measured[part]["milliseconds"]["median"] for part in ("eager", "onnxruntime")}
        assert measured["onnxruntime / eager"]["median"] == pytest.approx(times["eager"] / times["onnxruntime"])
