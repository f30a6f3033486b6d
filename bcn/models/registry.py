"""Models by name: "sort-of-clevr/multirn-h" is the row multirn-h of the paper's table on Sort-of-CLEVR."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, get_type_hints

from torch import nn

from bcn.errors import BcnError, did_you_mean

Builder = TypeVar("Builder", bound=Callable[..., nn.Module])
IMAGES = {"scaled-mnist": (1, 128, 128), "stl10": (3, 96, 96), "sort-of-clevr": (3, 75, 75), "clevr": (3, 128, 128)}
"""channels, height and width of the images that the models of a data set are made for"""
OTHER_IMAGES = {"clevr/multirn-h-224": (3, 224, 224)}
"""of a model that is made for others than the rest of its data set"""
_BUILDERS: dict[str, Callable[..., nn.Module]] = {}
_WORDS = {str: "text", int: "a positive whole number", tuple[int, ...]: "positive whole numbers"}
"""what a builder's argument may be, in words"""


def register(name: str) -> Callable[[Builder], Builder]:
    """Make a builder available as `create_model(name)`; its arguments become the model's arguments."""

    def add(builder: Builder) -> Builder:
        assert name not in _BUILDERS, f"two models are called {name}"
        _BUILDERS[name] = builder
        return builder

    return add


def list_models(filter: str = "") -> list[str]:
    """The names that contain `filter`, data set by data set, each in the order of the paper's table.

    >>> list_models("stl10/resnet")
    ['stl10/resnet18', 'stl10/resnet18-bcn']
    """
    return [name for name in _BUILDERS if filter in name]


def image_shape(name: str) -> tuple[int, int, int]:
    """Channels, height and width of the images that a model is made for.

    >>> image_shape("clevr/multirn-h"), image_shape("clevr/multirn-h-224")
    ((3, 128, 128), (3, 224, 224))
    """
    if (family := name.split("/")[0]) not in IMAGES:
        raise did_you_mean("model", name, _BUILDERS)
    return OTHER_IMAGES.get(name) or IMAGES[family]


def create_model(name: str, **arguments: Any) -> nn.Module:
    """A new model with random weights.

    >>> model = create_model("sort-of-clevr/multirn-h", planes="xy", origin="top-left", sizes=(64, 64))
    """
    if name not in _BUILDERS:
        raise did_you_mean("model", name, _BUILDERS)
    builder = _BUILDERS[name]
    accepted = {argument: get_type_hints(builder)[argument] for argument in inspect.signature(builder).parameters}
    for argument, value in arguments.items():
        if argument not in accepted or not _fits(value, accepted[argument]):
            known = ", ".join(f"{argument} ({_WORDS[kind]})" for argument, kind in accepted.items()) or "none"
            raise BcnError(f"{name} does not take {argument}={value!r}: its arguments are {known}")
    return builder(**arguments)


def _fits(value: Any, kind: Any) -> bool:
    if kind is str:
        return isinstance(value, str)
    if kind is int:
        return type(value) is int and value > 0
    return isinstance(value, Sequence) and not isinstance(value, str) and all(_fits(number, int) for number in value)
