"""Stacked attention (Yang et al., 2016), the baseline of table 4 that attends twice.

B images of n objects with C channels, Q questions of D numbers about each, K hidden channels.
"""

import torch
from torch import Tensor, nn

from bcn.layers.rows import rows


class StackedAttention(nn.Module):
    """Each step attends to all objects by the question so far, and adds the attended object to the question.

    >>> StackedAttention(24, 256)(torch.rand(2, 24, 8, 8), torch.rand(2, 20, 256)).shape
    torch.Size([2, 20, 256])
    """

    def __init__(self, channels: int, question_dim: int, hidden: int = 256, *, steps: int = 2) -> None:
        super().__init__()
        self.question_dim = question_dim
        self.objects = nn.Linear(channels, question_dim)
        self.of_object = nn.ModuleList(nn.Linear(question_dim, hidden) for _ in range(steps))
        self.of_question = nn.ModuleList(nn.Linear(question_dim, hidden) for _ in range(steps))
        self.weigh = nn.ModuleList(nn.Linear(hidden, 1, bias=False) for _ in range(steps))

    def forward(self, map_BCHW: Tensor, question: Tensor) -> Tensor:
        query_BQD = question if question.dim() == 3 else question[:, None]
        object_BnD = torch.tanh(self.objects(rows(map_BCHW)))
        for of_object, of_question, weigh in zip(self.of_object, self.of_question, self.weigh, strict=True):
            hidden_BQnK = torch.tanh(of_object(object_BnD)[:, None] + of_question(query_BQD)[:, :, None])
            attention_BQn = weigh(hidden_BQnK)[..., 0].softmax(dim=2)
            query_BQD = query_BQD + torch.bmm(attention_BQn, object_BnD)
        return query_BQD if question.dim() == 3 else query_BQD[:, 0]
