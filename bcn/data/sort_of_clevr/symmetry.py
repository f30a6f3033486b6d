"""The eight symmetries of a square, under which a scene of v1 is another scene of v1, as likely as itself.

Mirroring changes what is left or above; turning a scene over its diagonal makes of left above. Distances and shapes
stay, so the relational questions keep their answers.

B images, Q questions about each.
"""

import torch
from torch import Tensor

from bcn.data.dataset import Batch
from bcn.data.sort_of_clevr.questions import ANSWERS, KINDS

LEFT, ABOVE = KINDS.index("left"), KINDS.index("above")
YES, NO = ANSWERS.index("yes"), ANSWERS.index("no")
KIND_BITS = 8
"""the first bit of a question of v1 that tells the kind"""


def transform(batch: Batch, symmetry_B: Tensor, *, kind_bits: int = KIND_BITS) -> Batch:
    """Images with their questions and answers, each by the symmetry of its number.

    Args:
        symmetry_B: 0 to 7: the sum of 1 for a mirror from left to right, 2 from top to bottom, then 4 for the diagonal.
        kind_bits: the first bit of a question that tells the kind.
    """
    assert batch.question is not None
    assert batch.kind is not None
    image, answer, question, kind = batch.image, batch.answer.clone(), batch.question.clone(), batch.kind
    mirror_x, mirror_y, diagonal = ((symmetry_B & bit) > 0 for bit in (1, 2, 4))
    masks = torch.stack([mirror_x, mirror_y, diagonal])[..., None, None, None]
    on_x, on_y, on_diagonal = masks.to(image.device, non_blocking=True)
    image = image.flip(3).where(on_x, image)
    image = image.flip(2).where(on_y, image)
    image = image.transpose(2, 3).where(on_diagonal, image).contiguous()
    other = (mirror_x[:, None] & (kind == LEFT)) | (mirror_y[:, None] & (kind == ABOVE))
    answer[other] = YES + NO - answer[other]
    swapped = diagonal[:, None] & ((kind == LEFT) | (kind == ABOVE))
    left, above = kind_bits + LEFT, kind_bits + ABOVE
    question[..., [left, above]] = torch.where(
        swapped[..., None], question[..., [above, left]], question[..., [left, above]]
    )
    if batch.objects is not None:
        x, y = batch.objects[..., :2].unbind(-1)  # from the middle
        x, y = x.where(~mirror_x[:, None], -x), y.where(~mirror_y[:, None], -y)
        place = torch.stack([y.where(diagonal[:, None], x), x.where(diagonal[:, None], y)], dim=-1)
        batch = batch._replace(objects=torch.cat([place, batch.objects[..., 2:]], dim=-1))
    return batch._replace(
        image=image, answer=answer, question=question, kind=torch.where(swapped, LEFT + ABOVE - kind, kind)
    )
