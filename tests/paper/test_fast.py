"""The recipe for one GPU: what it is, that it trains, and that a step of it fits into 8 GB by far."""

from dataclasses import asdict
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from helpers.annotated_clevr import annotated_clevr

from bcn.bench.trace import Trace
from bcn.models.registry import create_model
from bcn.paper.departures import departures
from bcn.paper.tables import find_recipe, find_row
from bcn.training.loop import train

NAME = "fast/multirn-h"


@pytest.mark.parametrize("scale", ["cpu", "paper"])
def test_a_step_has_64_images_in_bf16_and_warms_up(scale: str) -> None:
    recipe, table4 = find_recipe(NAME, scale), find_recipe("table4/multirn-h", scale)
    assert (recipe.batch_size, recipe.precision, recipe.accumulate) == (64, "bf16", 1)
    assert (recipe.optim.name, recipe.optim.schedule) == ("adam", "warmup-cosine")
    assert recipe.optim.warmup > 0
    assert recipe.auxiliary is None
    assert (recipe.model, recipe.data, recipe.paper) == (table4.model, table4.data, table4.paper)
    said = departures(find_row(NAME), "paper" if scale == "paper" else "cpu")
    assert "bfloat16" in said["precision"]
    assert "not yet trained" in said["evidence"]


def test_it_departs_from_table_4_in_the_step_the_schedule_and_the_last_relu_alone() -> None:
    ours, table4 = asdict(find_recipe(NAME, "paper")), asdict(find_recipe("table4/multirn-h", "paper"))
    differing = {key for key in ours if ours[key] != table4[key]}
    assert differing == {"name", "batch_size", "precision", "optim", "epochs", "arguments"}


def test_it_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BCN_CACHE", str(tmp_path / "cache"))
    data = annotated_clevr(tmp_path / "clevr-like-v1")
    record = train(find_recipe(NAME, "smoke"), seed=0, runs=tmp_path, data=data)
    assert record["steps"] == 2
    assert record["metrics"]["test"]["all"]["total"] == 20  # two images


def peak_bytes(images: int, parts: int) -> int:
    """The most that a step holds, in float32, gradients and the moments of Adam included."""
    trace = Trace("meta")
    with torch.device("meta"), trace:
        model = create_model(find_recipe(NAME, "paper").model)
        optimiser = torch.optim.Adam(model.parameters())
        for _ in range(parts):
            logits = model(torch.empty(images // parts, 3, 128, 128), torch.empty(images // parts, 10, 4).long())
            answer = torch.empty(logits.shape[:-1], dtype=torch.long).flatten()
            F.cross_entropy(logits.flatten(0, -2), answer).backward()
        optimiser.step()
    return trace.peak_bytes


def test_a_step_fits_into_8_gb_and_parts_make_it_smaller() -> None:
    """On the meta device, whose tensors have sizes alone; questions of four words, as reading them takes little."""
    whole, in_parts = peak_bytes(64, 1), peak_bytes(64, 4)
    assert whole < 1e9
    assert in_parts < 0.6 * whole
