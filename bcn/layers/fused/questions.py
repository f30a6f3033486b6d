"""The sum over objects for every question of a batch; what is asked twice about an image is computed once.

B images of n objects, Q questions of D numbers about each, U distinct questions in all; K channels of g's first layer,
G of its last; m offsets of an image.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from bcn.layers.fused.dispatch import has_values
from bcn.layers.fused.sum import pooled_sum


def sum_distinct_questions(
    base_BnK: Tensor,
    offset_BmK: Tensor | None,
    question_BQD: Tensor,
    of_question_KD: Tensor,
    weights: list[Tensor],
    biases: list[Tensor],
) -> Tensor:
    """sum over n and m of relu(... relu(W_2 relu(base_n + offset_m + W_q q) + b_2) ...): (B, Q, G)."""
    images, questions = question_BQD.shape[:2]
    image_U = torch.arange(images, device=question_BQD.device)
    if questions != 1:
        image_U = image_U.repeat_interleave(questions)
    question_UD, inverse = question_BQD.flatten(0, 1), None
    if questions > 1 and not question_BQD.requires_grad and has_values(question_BQD):
        first, inverse = _find_distinct(image_U, question_UD)
        if inverse is not None:
            image_U, question_UD = image_U[first], question_UD[first]
    shift_UmK = F.linear(question_UD, of_question_KD)[:, None]
    if offset_BmK is not None:
        shift_UmK = shift_UmK + (offset_BmK if questions == 1 else offset_BmK.index_select(0, image_U))
    count, offsets, _ = shift_UmK.shape
    owner = image_U if offsets == 1 else image_U.repeat_interleave(offsets)
    total_UG = pooled_sum(base_BnK, shift_UmK.flatten(0, 1), owner, weights, biases)
    if offsets > 1:
        total_UG = total_UG.view(count, offsets, total_UG.shape[1]).sum(dim=1)
    if inverse is not None:
        total_UG = total_UG.index_select(0, inverse)
    return total_UG.view(images, questions, total_UG.shape[1])


def _find_distinct(image_U: Tensor, question_UD: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """The first of each distinct pair of image and question, and which of those each pair is; None if all differ."""
    size = question_UD.shape[1] * question_UD.element_size()
    data = question_UD.contiguous().view(torch.uint8).numpy().tobytes() if size else b""
    seen: dict[tuple[int, bytes], int] = {}
    inverse = [
        seen.setdefault((image, data[u * size : (u + 1) * size]), len(seen)) for u, image in enumerate(image_U.tolist())
    ]
    if len(seen) == len(inverse):
        return None, None
    first = dict(zip(reversed(inverse), reversed(range(len(inverse))), strict=True))
    return torch.tensor([first[index] for index in range(len(seen))]).long(), torch.tensor(inverse).long()
