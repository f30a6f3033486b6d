"""The forward pass of any model on any data set.

B images, Q questions about each, C x H x W pixels.
"""

import torch
from torch import Tensor, nn

from bcn.data.dataset import Batch, Dataset
from bcn.errors import BcnError


def device_of(model: nn.Module) -> torch.device:
    """Where a model is, and so where its data have to be."""
    return next(model.parameters()).device


def move_to(batch: Batch, device: torch.device) -> Batch:
    """The batch on another device."""

    def move(tensor: Tensor) -> Tensor:
        return tensor.to(device, non_blocking=True)

    fields = {name: move(value) for name, value in batch._asdict().items() if isinstance(value, Tensor)}
    auxiliary = batch.auxiliary and {name: move(tensor) for name, tensor in batch.auxiliary.items()}
    return batch._replace(**fields, auxiliary=auxiliary)


def forward(model: nn.Module, image_BCHW: Tensor, question: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """A model's logits, and the centre (B, 2) where it predicts one."""
    output = model(image_BCHW) if question is None else model(image_BCHW, question)
    return output if isinstance(output, tuple) else (output, None)


def check_fit(model: nn.Module, dataset: Dataset, name: str) -> None:
    """Refuse a model that cannot answer this data set, with one sentence instead of a trace from within a layer."""
    was_training = model.training
    model.eval()
    batch = move_to(dataset[[0]], device_of(model))
    try:
        with torch.inference_mode():
            logits, _ = forward(model, dataset.preprocessing(batch.image), batch.question)
    except (RuntimeError, TypeError, ValueError) as error:
        shapes = f"images {tuple(batch.image.shape[1:])}"
        shapes += "" if batch.question is None else f" and questions {tuple(batch.question.shape[1:])}"
        reason = str(error).strip().split("\n")[0]
        raise BcnError(f"{name} cannot read {dataset.name} with {shapes}: {reason}; choose another model") from error
    finally:
        model.train(was_training)
    expected = (*batch.answer.shape, len(dataset.answers))
    if tuple(logits.shape) != expected:
        raise BcnError(
            f"{name} answers {dataset.name} with shape {tuple(logits.shape)} instead of {expected}; choose another one"
        )
