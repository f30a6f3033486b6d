"""Counts of parameters and multiply-accumulates (MACs), made by running the models on the meta device.

Sections are the paper's (appendix B.2): the CNN; BCN with g's first layer; the rest of g with the sum, or what a
baseline has in its place; f; and the question encoder. MACs come in two kinds:

- `reference_macs`: one question about one image in the reference implementation, counted as the paper counts what it
  calls FLOPs: multiply-accumulates, one more for each output that has a bias, two for each output of BatchNorm or
  LayerNorm, one for each term of the sum over objects.
- `executed_macs`: the multiply-accumulates alone of the convolutions and matrix products that the fast form runs per
  question, given the number of questions about each image of a batch.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from bcn.models.clevr import QuestionType
from bcn.models.object_model import ObjectModel
from bcn.models.reference import reference_model
from bcn.models.registry import create_model, image_shape
from bcn.models.relation_model import QuestionAnswerer

BATCH = 64
"""images of the batch that share the cost of the coordinate planes"""
TOKENS = 20
"""tokens of a question, about the mean of CLEVR's"""
OBJECTS = 12
"""of a scene that is given as objects: as many as there may be"""


@dataclass(frozen=True)
class Macs:
    convolution: float
    bcn: float
    g: float
    f: float
    question: float
    """the question encoder, where questions are in words"""

    @property
    def total(self) -> float:
        return self.convolution + self.bcn + self.g + self.f + self.question


def count_parameters(model: nn.Module, *, statistics: bool = False) -> int:
    """Trainable parameters; `statistics` adds BatchNorm's running means and variances.

    >>> count_parameters(create_model("scaled-mnist/baseline"), statistics=True)
    11244
    """
    tensors: list[Tensor] = list(model.parameters())
    if statistics:
        tensors += [buffer for name, buffer in model.named_buffers() if name.endswith(("running_mean", "running_var"))]
    return sum(tensor.numel() for tensor in tensors)


class Cost(NamedTuple):
    """What a row of the paper's tables says about its model."""

    parameters: int
    """with BatchNorm's running statistics in classifiers; trainable ones alone in models that answer questions"""
    macs: int
    """`reference_macs` in total"""


@cache
def paper_cost(name: str, arguments: tuple[tuple[str, Any], ...] = ()) -> Cost:
    """Parameters and MACs of a model as the paper counts them.

    >>> paper_cost("sort-of-clevr/multirn-h").parameters
    345074
    """
    model = on_meta(name, **dict(arguments))
    classifies = len(example_inputs(model, image_shape(name), images=1, questions=1)) == 1
    parameters = count_parameters(model, statistics=classifies)
    return Cost(parameters, round(reference_macs(model, image_shape(name)).total))


def on_meta(name: str, **arguments: Any) -> nn.Module:
    """A model that has shapes and no storage."""
    with torch.device("meta"):
        return create_model(name, **arguments)


def reference_macs(model: nn.Module, image: tuple[int, int, int]) -> Macs:
    """MACs for one question about one image (C, H, W), or for one image where the model only classifies.

    >>> reference_macs(on_meta("sort-of-clevr/multirn"), (3, 75, 75)).bcn  # 128,640 for each of 25 objects
    3216000.0
    """
    return _count(reference_model(model), example_inputs(model, image, images=1, questions=1), paper=True)


def executed_macs(model: nn.Module, image: tuple[int, int, int], *, questions: int = 1) -> Macs:
    """MACs per question where an image (C, H, W) has `questions` of them, or per image where the model classifies."""
    inputs = example_inputs(model, image, images=BATCH, questions=questions)
    return _count(copy.deepcopy(model), inputs, paper=False, divide_by=BATCH * (questions if len(inputs) > 1 else 1))


def example_inputs(model: nn.Module, image: tuple[int, int, int], *, images: int, questions: int) -> tuple[Tensor, ...]:
    """What a model takes, on the meta device: one with `question_dim` is asked."""
    image_BCHW = torch.empty(images, *image, device="meta")
    if isinstance(model, QuestionAnswerer | QuestionType):
        return image_BCHW, torch.empty(images, questions, TOKENS, dtype=torch.long, device="meta")
    question_dim = getattr(model, "question_dim", None)
    if question_dim is None:
        return (image_BCHW,)
    question_BQD = torch.empty(images, questions, question_dim, device="meta")
    if not isinstance(model, ObjectModel):
        return image_BCHW, question_BQD
    objects_BNC = torch.empty(images, OBJECTS, model.object_dim, device="meta")
    return objects_BNC, torch.empty(images, OBJECTS, dtype=torch.bool, device="meta"), question_BQD


class _Counter(TorchFunctionMode):
    """Counts the MACs of each parameter, and those of calls without parameters.

    A weight may be a view of a parameter: a part of it, or a reshaped one.
    """

    def __init__(self, model: nn.Module, *, paper: bool) -> None:
        super().__init__()
        self.names = {id(parameter): name for name, parameter in model.named_parameters()}
        self.paper = paper
        self.macs = dict.fromkeys(self.names.values(), 0)
        self.unnamed = 0

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        if function in (F.linear, torch.conv2d):
            weight, bias = args[1], args[2] if len(args) > 2 else None
            parameter = weight if weight._base is None else weight._base
            per_output = weight[0].numel() + (self.paper and bias is not None)
            self.macs[self.names[id(parameter)]] += result.numel() * per_output
        elif function is torch.bmm:
            self.unnamed += result.numel() * args[0].shape[2]
        elif function is F.scaled_dot_product_attention:
            query, key, _ = args
            self.unnamed += (query.numel() + result.numel()) * key.shape[2]
        elif function in (F.batch_norm, F.layer_norm) and self.paper:
            if kwargs["weight"] is None:
                self.unnamed += 2 * result.numel()
            else:
                self.macs[self.names[id(kwargs["weight"])]] += 2 * result.numel()
        elif function is Tensor.sum and self.paper:
            self.unnamed += args[0].numel()
        return result


def _count(model: nn.Module, inputs: tuple[Tensor, ...], *, paper: bool, divide_by: int = 1) -> Macs:
    with torch.no_grad(), _Counter(model.to("meta").eval(), paper=paper) as counter:
        model(*inputs)
    broadcasts = any("broadcast" in name for name in counter.macs)
    sections = {"convolution": 0, "bcn": 0, "g": counter.unnamed, "f": 0, "question": 0}
    for name, macs in counter.macs.items():
        sections[_section(name, broadcasts)] += macs
    return Macs(**{section: macs / divide_by for section, macs in sections.items()})


def _section(parameter: str, broadcasts: bool) -> str:
    """The section that a parameter of a model, with or without a BCN, belongs to."""
    if parameter.startswith("question_encoder."):
        return "question"
    parameter = parameter.removeprefix("answer.")
    if "broadcast." in parameter or parameter.startswith("middle.") or (broadcasts and ".g.0." in parameter):
        return "bcn"
    if parameter.startswith("relation."):
        return "g"
    return "f" if parameter.startswith(("f.", "fc.", "head.")) else "convolution"
