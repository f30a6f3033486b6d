"""A model's answers about a scene with what happens on the way: the map, the vector, and the answers without it.

C x h x w the map that the BCN sees, Q questions of D numbers, A answers.
"""

from typing import Any

import torch
from torch import Tensor

from bcn.errors import BcnError
from bcn.inference.answer import Answer
from bcn.inference.broadcast import Broadcast, Pooled
from bcn.inference.reasoner import Reasoner
from bcn.training.broadcast_probe import replaced_vector
from bcn.web.scenes import SceneQuestion, draw, to_questions
from bcn.web.schema import SceneRequest
from bcn.web.truth import true_answer
from bcn.web.typical import typical

RUNNERS_UP = 3
"""in the response, for each of the many answers about a scene"""
DIGITS = 4
"""of what is drawn"""


@torch.inference_mode()
def answer_scene(reasoner: Reasoner, request: SceneRequest) -> dict[str, Any]:
    """The model's answers beside the true ones, and what its BCN makes of the image; the CNN runs once."""
    if reasoner.coding is None:
        raise BcnError(f"{reasoner.name} is not asked as Sort-of-CLEVR v1 or v2 is: choose other weights")
    questions, encoded = to_questions(request.objects, request.questions, reasoner.coding)
    output = reasoner.forward(draw(request.objects), encoded.numbers_QD)

    def check(logits_1QA: Tensor) -> list[dict[str, Any]]:
        answers = reasoner.rank(logits_1QA[0], encoded)
        return [_check(answer, request, question) for question, answer in zip(questions, answers, strict=True)]

    found: dict[str, Any] = {"answers": check(output.logits), "muted": None, "broadcast": None}
    pooled = output.pooled if reasoner.has_bcn else None
    if pooled is None:
        if request.mute:
            raise BcnError(f"{reasoner.name} has no BCN to mute: choose weights of a model with one")
        return found
    if request.mute:
        with replaced_vector(reasoner.model.broadcast, typical(reasoner).mean_K.expand_as):  # type: ignore[arg-type]
            question_1QD = reasoner.to_tensor(encoded.numbers_QD)
            found["muted"] = check(reasoner.model.from_features(pooled.map_BChw, question_1QD))  # type: ignore[operator]
    found["broadcast"] = _describe(reasoner, pooled, request)
    return found


def _check(answer: Answer, request: SceneRequest, question: SceneQuestion) -> dict[str, Any]:
    about = {"kind": question.kind, "colour": request.objects[question.objects[0]].colour, "objects": question.objects}
    return answer.to_dict(runners_up=RUNNERS_UP) | about | {"truth": true_answer(request.objects, question)}


def _describe(reasoner: Reasoner, pooled: Pooled, request: SceneRequest) -> dict[str, Any]:
    usual, broadcast, channel = typical(reasoner), Broadcast.of(pooled), request.channel
    broadcast = broadcast._replace(carries=broadcast.carries & usual.active_K)
    seen_hw = (pooled.map_BChw[0] - usual.empty_Chw).norm(dim=0)
    found = broadcast.to_dict() | {"seen": _rounded(seen_hw / seen_hw.max().clamp_min(1e-6)), "response": None}
    found["mean"] = _rounded(usual.mean_K) if request.mute else None
    if channel is not None:
        if channel >= len(broadcast.value):
            raise BcnError(f"channel {channel}: {reasoner.name} has channels 0 to {len(broadcast.value) - 1}")
        bcn: Any = reasoner.model.broadcast
        found["response"] = _rounded(bcn.before_pooling(pooled.map_BChw)[0, channel])
    return found


def _rounded(values: Tensor) -> list[float]:
    return [round(value, DIGITS) for value in values.flatten().tolist()]
