"""Models by name: "sort-of-clevr/multirn-h" is the row multirn-h of the paper's table on Sort-of-CLEVR."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, get_type_hints

from torch import nn

from bcn.errors import BcnError, did_you_mean

Builder = TypeVar("Builder", bound=Callable[..., nn.Module])


class Entry(NamedTuple):
    build: Callable[..., nn.Module]
    image: tuple[int, int, int]


_ENTRIES: dict[str, Entry] = {}
_DESCRIPTIONS = {
    str: "text",
    bool: "true or false",
    int: "a positive whole number",
    float: "a number",
    tuple[int, ...]: "positive whole numbers",
}
"""what a builder's argument may be"""


ADDED = {"final_relu": True}
"""arguments that came later, and what every model had before: recipes and weights of that time do not name them"""


def register(name: str, *, image: tuple[int, int, int]) -> Callable[[Builder], Builder]:
    """Make a builder available as `create_model(name)`; its arguments become the model's arguments.

    Args:
        image: channels, height and width of the images that the model is made for.
    """

    def add(builder: Builder) -> Builder:
        assert name not in _ENTRIES, f"two models are called {name}"
        _ENTRIES[name] = Entry(builder, image)
        return builder

    return add


def list_models(filter: str = "") -> list[str]:
    """The names that contain `filter`, data set by data set, each in the order of the paper's table.

    >>> list_models("stl10/resnet")
    ['stl10/resnet18', 'stl10/resnet18-bcn']
    """
    return [name for name in _ENTRIES if filter in name]


def image_shape(name: str) -> tuple[int, int, int]:
    """Channels, height and width of the images that a model is made for.

    >>> image_shape("clevr/multirn-h"), image_shape("clevr/multirn-h-224")
    ((3, 128, 128), (3, 224, 224))
    """
    return _find(name).image


def create_model(name: str, **arguments: Any) -> nn.Module:
    """A new model with random weights.

    >>> model = create_model("sort-of-clevr/multirn-h", planes="xy", origin="top-left", sizes=(64, 64))

    Args:
        name: one of `list_models()`.
        arguments: what the model takes, such as `planes` and `sizes`; a wrong one is answered with those there are.
    """
    build = _find(name).build
    accepted = {argument: get_type_hints(build)[argument] for argument in inspect.signature(build).parameters}
    for argument, value in arguments.items():
        if argument not in accepted or not _fits(value, accepted[argument]):
            known = ", ".join(f"{argument} ({_DESCRIPTIONS[kind]})" for argument, kind in accepted.items()) or "none"
            raise BcnError(f"{name} does not take {argument}={value!r}: its arguments are {known}")
    return build(**arguments)


def read_arguments(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that weights were written with, which may be from before some were added.

    >>> read_arguments("scaled-mnist/bcn", {"planes": "xy"}), read_arguments("scaled-mnist/baseline", {})
    ({'final_relu': True, 'planes': 'xy'}, {})
    """
    return {argument: ADDED[argument] for argument in _added(name)} | dict(arguments)


def write_arguments(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that weights are written with today, which name those that were added.

    >>> write_arguments("scaled-mnist/bcn", {"planes": "xy"})
    {'final_relu': False, 'planes': 'xy'}
    """
    return {argument: parameter.default for argument, parameter in _added(name).items()} | dict(arguments)


def _added(name: str) -> dict[str, inspect.Parameter]:
    """Those of a model's parameters that came later."""
    parameters = inspect.signature(_find(name).build).parameters
    return {argument: parameters[argument] for argument in ADDED if argument in parameters}


def _find(name: str) -> Entry:
    if name not in _ENTRIES:
        raise did_you_mean("model", name, _ENTRIES)
    return _ENTRIES[name]


def _fits(value: Any, kind: Any) -> bool:
    if kind is str:
        return isinstance(value, str)
    if kind is bool:
        return type(value) is bool
    if kind is float:
        return type(value) in (int, float)
    if kind is int:
        return type(value) is int and value > 0
    return isinstance(value, Sequence) and not isinstance(value, str) and all(_fits(number, int) for number in value)
