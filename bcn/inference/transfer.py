"""Accuracy on CLEVR's original images of a model that was trained on clevr-like."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from torch import nn

from bcn.data.clevr_like.transfer import open_transfer
from bcn.data.vqa.clevr import CLEVR_LIKE, CLEVR_LIKE_V2
from bcn.training.environment import commit
from bcn.training.forward import check_fit
from bcn.training.metrics import compute_metrics, evaluate


def evaluate_transfer(
    model: nn.Module,
    description: dict[str, Any],
    size: int,
    *,
    data: Path | None = None,
    split: str = "val",
    questions: int = 40,
    grammar: str | None = None,
) -> dict[str, Any]:
    """A record: the metrics, and what they were measured on and with.

    Args:
        description: of the model, from its weights file.
        size: width and height of the images that the model takes.
        data: where original images and scenes lie (default: BCN_DATA).
        questions: about each image.
        grammar: whose questions (default: those that the model was trained on; clevr-like-v2's for CLEVR's own).
    """
    if grammar is None:
        grammar = CLEVR_LIKE if str(description["data"]).startswith(CLEVR_LIKE) else CLEVR_LIKE_V2
    dataset = open_transfer(
        words=tuple(description["words"]),
        answers=tuple(description["answers"]),
        data=data,
        split=split,
        size=size,
        questions=questions,
        grammar=grammar,
    )
    check_fit(model, dataset, description["model"])
    return {
        "data": dataset.name,
        "split": split,
        "images": len(dataset.image),
        **{key: description[key] for key in ("model", "recipe", "scale", "seed", "epoch")},
        "metrics": compute_metrics(evaluate(model, dataset, batch_size=16), dataset),
        "threads": torch.get_num_threads(),
        "commit": commit(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
