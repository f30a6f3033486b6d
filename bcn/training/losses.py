"""The loss of answers and, where a model localises, of centres (section 5.2). Losses are sums: a step divides them.

B images, Q questions about each.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bcn.data.dataset import IGNORE_INDEX, OUT_OF_VOCABULARY, Batch, Preprocessing
from bcn.models.centre_net import detection_loss
from bcn.training.forward import forward, inputs_of


def answer_loss(logits: Tensor, centre_B2: Tensor | None, batch: Batch, *, localise: bool) -> Tensor:
    """The cross-entropy of every answer, plus with equal weight the mean square error of every centre, summed.

    Where boxes are to be found, `detection_loss`.
    """
    logits = logits.float() if logits.dtype == torch.bfloat16 else logits
    if batch.box is not None:
        assert centre_B2 is not None
        return detection_loss(logits, centre_B2.to(logits), batch.answer, batch.box)
    answer = batch.answer.masked_fill(batch.answer == OUT_OF_VOCABULARY, IGNORE_INDEX)
    loss = F.cross_entropy(logits.flatten(0, -2), answer.flatten(), reduction="sum")
    if centre_B2 is None:
        return loss
    if not localise or batch.centre is None:
        # An unused centre takes part in the graph, so that no parameter is without a gradient.
        return loss + 0 * centre_B2.sum()
    return loss + F.mse_loss(centre_B2, batch.centre, reduction="sum") / 2


class AnswerLoss(nn.Module):
    """A model with its loss: from a batch to the summed `answer_loss`.

    Args:
        model: (image, question) -> logits, or logits and centre.
        preprocessing: from pixels to what the model sees.
        localise: whether centres are trained.
    """

    def __init__(self, model: nn.Module, preprocessing: Preprocessing, *, localise: bool = False) -> None:
        super().__init__()
        self.model, self.preprocessing, self.localise = model, preprocessing, localise

    def forward(self, batch: Batch) -> Tensor:
        logits, centre_B2 = forward(self.model, *inputs_of(batch, self.preprocessing))
        return answer_loss(logits, centre_B2, batch, localise=self.localise)
