"""Parameters and multiply-accumulates (MACs), computed from the modules themselves on the meta device.

Sections are the paper's (appendix B.2): the CNN; BCN with g's first layer; the rest of g with the sum, or what a rival
has in its place; f; and reading a question in words. Two kinds:

- `reference_macs`: one question about one image in the form in which the equations are written, counted as the paper
  counts what it calls FLOPs: multiply-accumulates, one more for each output that has a bias, two for each output of
  BatchNorm, one for each term of the sum over objects.
- `executed_macs`: the multiply-accumulates alone of the convolutions and matrix products that our form runs for a
  question, where so many questions are asked about each image of a batch.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from bcn.models.clevr import QuestionType
from bcn.models.reference import reference_model
from bcn.models.registry import create_model
from bcn.models.relation_model import QuestionAnswerer, RelationModel

BATCH = 64
"""images that share what the coordinate planes cost"""
TOKENS = 20
"""words of a question, about what CLEVR's have"""


@dataclass(frozen=True)
class Macs:
    convolution: float
    bcn: float
    g: float
    f: float
    question: float
    """reading it, where it is in words"""

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


def on_meta(name: str, **arguments: Any) -> nn.Module:
    """A model that has shapes and no storage."""
    with torch.device("meta"):
        return create_model(name, **arguments)


def reference_macs(model: nn.Module, image: tuple[int, int, int]) -> Macs:
    """For one question about one image (C, H, W), or one image where nothing is asked.

    >>> reference_macs(on_meta("sort-of-clevr/multirn"), (3, 75, 75)).bcn  # 128,640 for each of 25 objects
    3216000.0
    """
    return _count(reference_model(model), _inputs(model, image, images=1, questions=1), paper=True)


def executed_macs(model: nn.Module, image: tuple[int, int, int], *, questions: int = 1) -> Macs:
    """For one question about an image (C, H, W) of which so many are asked, or one image where nothing is asked."""
    inputs = _inputs(model, image, images=BATCH, questions=questions)
    return _count(copy.deepcopy(model), inputs, paper=False, share=BATCH * (questions if len(inputs) == 2 else 1))


def _inputs(model: nn.Module, image: tuple[int, int, int], *, images: int, questions: int) -> tuple[Tensor, ...]:
    image_BCHW = torch.empty(images, *image, device="meta")
    if isinstance(model, QuestionAnswerer | QuestionType):
        return image_BCHW, torch.empty(images, questions, TOKENS, dtype=torch.long, device="meta")
    if isinstance(model, RelationModel):
        return image_BCHW, torch.empty(images, questions, model.question_dim, device="meta")
    return (image_BCHW,)


class _Counter(TorchFunctionMode):
    """Counts the calls that have weights, by the parameter that a weight is or is a part of, and what has none."""

    def __init__(self, model: nn.Module, *, paper: bool) -> None:
        super().__init__()
        self.names = {id(parameter): name for name, parameter in model.named_parameters()}
        self.paper = paper
        self.macs = dict.fromkeys(self.names.values(), 0)
        self.summed = 0

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        if function in (F.linear, torch.conv2d):
            weight, bias = args[1], args[2] if len(args) > 2 else None
            whole = weight if weight._base is None else weight._base
            one = weight[0].numel() + (self.paper and bias is not None)
            self.macs[self.names[id(whole)]] += result.numel() * one
        elif function is torch.bmm:
            self.summed += result.numel() * args[0].shape[2]
        elif function is F.batch_norm and self.paper:
            if kwargs["weight"] is None:
                self.summed += 2 * result.numel()
            else:
                self.macs[self.names[id(kwargs["weight"])]] += 2 * result.numel()
        elif function is Tensor.sum and self.paper:
            self.summed += args[0].numel()
        return result


def _count(model: nn.Module, inputs: tuple[Tensor, ...], *, paper: bool, share: int = 1) -> Macs:
    with _Counter(model.to("meta").eval(), paper=paper) as counter:
        model(*inputs)
    broadcasts = any("broadcast" in name for name in counter.macs)
    sections = {"convolution": 0, "bcn": 0, "g": counter.summed, "f": 0, "question": 0}
    for name, macs in counter.macs.items():
        sections[_section(name, broadcasts)] += macs
    return Macs(**{section: macs / share for section, macs in sections.items()})


def _section(parameter: str, broadcasts: bool) -> str:
    """The section of a parameter of a model that has a BCN or has not."""
    if parameter.startswith("question_encoder."):
        return "question"
    parameter = parameter.removeprefix("answer.")
    if "broadcast." in parameter or parameter.startswith("middle.") or (broadcasts and ".g.0." in parameter):
        return "bcn"
    if parameter.startswith("relation."):
        return "g"
    return "f" if parameter.startswith(("f.", "fc.", "head.")) else "convolution"
