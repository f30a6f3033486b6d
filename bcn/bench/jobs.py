"""What is measured: training steps and inference of a model, with our implementation and with the reference.

Inputs and weights are random; "trained" has the shipped weights and images of its data set, which give more zeros.

B images, Q questions about each.
"""

from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bcn.data.registry import open_dataset
from bcn.inference.reasoner import load
from bcn.inference.shipped import list_weights
from bcn.layers.broadcast import BroadcastConv
from bcn.layers.relation import MultiRelation, PairRelation
from bcn.models.clevr import VOCAB_SIZE
from bcn.models.cost import example_inputs, on_meta
from bcn.models.reference import reference_model
from bcn.models.registry import create_model, image_shape

Form = Literal["ours", "reference", "trained"]
Job = Callable[[], object]


def build(name: str, form: Form) -> nn.Module:
    torch.manual_seed(0)
    if form == "trained":
        return load(name).model
    model = create_model(name)
    return model if form == "ours" else reference_model(model)


def inputs(name: str, form: Form, images: int, questions: int) -> tuple[Tensor, ...]:
    """What a model takes, such as images and questions: random, or real for a trained model."""
    if form == "trained":
        data = open_dataset(list_weights()[name]["data"], "val", images=images, questions="all")
        batch = data[range(images)]
        assert batch.question is not None
        return load(name).preprocessing(batch.image), batch.question[:, :questions].float()
    examples = example_inputs(on_meta(name), image_shape(name), images=images, questions=questions)
    return tuple(_random(example) for example in examples)


def _random(example: Tensor) -> Tensor:
    """Numbers, token indices, or a mask of objects that are all there."""
    if example.dtype == torch.bool:
        return torch.ones(example.shape, dtype=torch.bool)
    return torch.rand(example.shape) if example.is_floating_point() else torch.randint(1, VOCAB_SIZE, example.shape)


def training(name: str, form: Form = "ours", images: int | str = 16, questions: int | str = 20) -> Job:
    """A whole step: forward, loss, backward, Adam."""
    model, given = build(name, form).train(), inputs(name, form, int(images), int(questions))
    # A learning rate of 0: a model that overfits its one batch ends with denormal gradients, which are slow on a CPU.
    optimiser = torch.optim.Adam(model.parameters(), 0.0, fused=True)

    def step() -> None:
        out = model(*given)
        logits = out[0] if isinstance(out, tuple) else out
        loss = F.cross_entropy(logits.flatten(0, -2), torch.zeros(logits.shape[:-1], dtype=torch.long).flatten())
        if isinstance(out, tuple):
            loss = loss + out[1].square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    return step


def inference(name: str, form: Form = "ours", images: int | str = 16, questions: int | str = 20) -> Job:
    model, given = build(name, form).eval(), inputs(name, form, int(images), int(questions))

    def run() -> None:
        with torch.inference_mode():
            model(*given)

    return run


def relation_layer(kind: str) -> MultiRelation | PairRelation:
    """The relation of `sort-of-clevr/multirn` or `sort-of-clevr/rn` by itself."""
    return MultiRelation(24, 11, broadcast=BroadcastConv(24)) if kind == "multirn" else PairRelation(24, 11)


def relation(kind: str, objects: int | str) -> Job:
    """Forward and backward of the relation alone, one question about one image; `objects` is a square number."""
    torch.manual_seed(0)
    side = round(int(objects) ** 0.5)
    layer = relation_layer(kind)
    map_BCHW = torch.rand(1, 24, side, side).contiguous(memory_format=torch.channels_last).requires_grad_()
    question = torch.rand(1, 1, 11)

    def step() -> None:
        layer.zero_grad()
        layer(map_BCHW, question).sum().backward()

    return step


def product(size: int = 2048) -> Job:
    """The yardstick: a large matrix product, 2 size^3 floating-point operations."""
    a, b, out = torch.rand(size, size), torch.rand(size, size), torch.empty(size, size)
    return lambda: torch.mm(a, b, out=out)


JOBS: dict[str, Callable[..., Job]] = {"training": training, "inference": inference, "relation": relation}
