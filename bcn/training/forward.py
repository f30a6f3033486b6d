"""The forward pass of any model on any data set.

B images, Q questions about each, C x H x W pixels.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from bcn.data.dataset import Batch, Dataset, Preprocessing
from bcn.errors import BcnError
from bcn.models.question_encoder import PackedQuestions, QuestionEncoder


def device_of(model: nn.Module) -> torch.device:
    """Where a model is, and so where its data have to be."""
    return next(model.parameters()).device


def prepare(batch: Batch, model: nn.Module) -> Batch:
    """What a GPU would have to ask the host for, done before a batch goes there: words packed, memory pinned."""
    device = device_of(model)
    if device.type == "cpu":
        return batch
    encoder = next((module for module in model.modules() if isinstance(module, QuestionEncoder)), None)
    if encoder is not None and batch.question is not None and batch.question.shape[:-1].numel():
        batch = batch._replace(packed=encoder.pack(batch.question))
    if device.type != "cuda":
        return batch
    with torch.cuda.device(device):  # else memory is pinned for the first GPU
        return _map(batch, lambda tensor: tensor if tensor.is_cuda else tensor.pin_memory())


def move_to(batch: Batch, device: torch.device) -> Batch:
    """The batch on another device; of packed questions what belongs there."""

    def move(tensor: Tensor) -> Tensor:
        return tensor.to(device, non_blocking=True)

    if batch.packed is None:
        return _map(batch, move)
    question, packed = batch.question, PackedQuestions(*batch.packed).to(device)
    return _map(batch._replace(question=None), move)._replace(question=question, packed=packed)


def send(batch: Batch, model: nn.Module) -> Batch:
    """The batch where the model is."""
    return move_to(prepare(batch, model), device_of(model))


def _map(batch: Batch, change: Callable[[Tensor], Tensor]) -> Batch:
    """The batch with each of its tensors changed."""
    return Batch(*tree_map_only(Tensor, change, tuple(batch)))


def question_of(batch: Batch) -> Tensor | PackedQuestions | None:
    """The questions as a model takes them."""
    return batch.question if batch.packed is None else PackedQuestions(*batch.packed)


def inputs_of(batch: Batch, preprocessing: Preprocessing) -> tuple[Tensor | PackedQuestions, ...]:
    """A batch as a model takes it: the image, or where the data set gives objects these and their mask; the question.

    Args:
        preprocessing: from pixels to what the model sees.
    """
    question = question_of(batch)
    asked = () if question is None else (question,)
    if batch.objects is None or batch.mask is None:
        return preprocessing(batch.image), *asked
    return batch.objects, batch.mask, *asked


def forward(model: nn.Module, *inputs: Tensor | PackedQuestions) -> tuple[Tensor, Tensor | None]:
    """A model's logits, and the centre (B, 2) where it predicts one, or the boxes of cells (B, n, 4)."""
    output = model(*inputs)
    return output if isinstance(output, tuple) else (output, None)


def check_fit(model: nn.Module, dataset: Dataset, name: str) -> None:
    """Refuse a model that cannot answer this data set, with one sentence instead of a trace from within a layer."""
    was_training = model.training
    model.eval()
    batch = send(dataset[[0]], model)
    try:
        with torch.inference_mode():
            logits, _ = forward(model, *inputs_of(batch, dataset.preprocessing))
    except (BcnError, RuntimeError, TypeError, ValueError) as error:
        seen = {"images": batch.image} if batch.objects is None else {"objects": batch.objects}
        shapes = ", ".join(f"{name} {tuple(tensor.shape[1:])}" for name, tensor in seen.items())
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
