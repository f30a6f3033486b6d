"""The model that answers questions about objects instead of pixels: f(relation(objects, question)).

A set of objects is a map of one row to the relations of `bcn.layers`: its positions are the objects, which hold their
place themselves, so there are no coordinate planes.

B scenes of N objects with C numbers each, some of them padding; Q questions of D numbers about each, A answers.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bcn.errors import BcnError
from bcn.layers.broadcast import BroadcastConv
from bcn.layers.fused.dispatch import has_values
from bcn.layers.relation import MultiRelation, check_questions
from bcn.layers.rows import rows


class ObjectModel(nn.Module):
    """f(relation(objects, question)), the question as numbers (B, D) or (B, Q, D); logits (B, A) or (B, Q, A).

    Padding changes nothing: its numbers are not looked at, and no sum, maximum or attention goes over it.

    Args:
        object_dim: numbers of an object.
        relation: (map, question, mask) -> (B, G) or (B, Q, G), with `question_dim`, such as `MultiRelation`.
        f: from there to the logits.
    """

    def __init__(self, object_dim: int, relation: nn.Module, f: nn.Module) -> None:
        super().__init__()
        self.object_dim = object_dim
        self.relation, self.f = relation, f

    @property
    def broadcast(self) -> BroadcastConv | None:
        return self.relation.broadcast if isinstance(self.relation, MultiRelation) else None

    @property
    def question_dim(self) -> int:
        question_dim = self.relation.question_dim
        assert isinstance(question_dim, int)
        return question_dim

    def forward(self, objects_BNC: Tensor, mask_BN: Tensor, question: Tensor) -> Tensor:
        """
        Args:
            mask_BN: bool, the objects that are there, at least one of a scene.
        """
        if objects_BNC.dim() != 3 or objects_BNC.shape[2] != self.object_dim or mask_BN.shape != objects_BNC.shape[:2]:
            raise BcnError(
                f"objects have the shape {tuple(objects_BNC.shape)} and their mask {tuple(mask_BN.shape)}: accepted "
                f"are (B, N, {self.object_dim}) and (B, N)"
            )
        if has_values(mask_BN) and not mask_BN.any(dim=1).all():
            raise BcnError("a scene has no object that is there: accepted are masks with at least one in each scene")
        check_questions(question, objects_BNC.shape[0], self.question_dim)
        present_BNC = objects_BNC.masked_fill(~mask_BN[..., None], 0)
        map_BC1N = present_BNC.transpose(1, 2)[:, :, None]
        logits: Tensor = self.f(self.relation(map_BC1N, question, mask_BN))
        return logits


class FlattenedObjects(nn.Module):
    """The baseline without relations: objects side by side in one long vector, zeros for those that are not there.

    >>> FlattenedObjects(10, 11)(torch.rand(2, 10, 1, 6), torch.rand(2, 20, 11)).shape
    torch.Size([2, 20, 131])
    """

    def __init__(self, channels: int, question_dim: int, *, objects: int = 12) -> None:
        super().__init__()
        self.question_dim, self.objects = question_dim, objects
        self.out_channels = channels * objects + question_dim

    def forward(self, map_BC1N: Tensor, question: Tensor, mask_BN: Tensor | None = None) -> Tensor:
        objects_BNC = rows(map_BC1N)
        number = objects_BNC.shape[1]
        if number > self.objects:
            raise BcnError(f"a scene has {number} objects: an mlp accepts up to {self.objects}")
        if mask_BN is not None:
            objects_BNC = objects_BNC.masked_fill(~mask_BN[..., None], 0)
        flat = F.pad(objects_BNC, (0, 0, 0, self.objects - number)).flatten(1)
        if question.dim() == 3:
            flat = flat[:, None].expand(-1, question.shape[1], -1)
        return torch.cat([flat, question], dim=-1)
