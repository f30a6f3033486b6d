"""`--set path=value`: a recipe with some of its fields changed from the command line."""

import re
from collections.abc import Sequence
from dataclasses import fields, replace
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from bcn.errors import BcnError, did_you_mean
from bcn.training.recipe import DESCRIPTIVE, Auxiliary, Data, Optim, Recipe

PARTS = {"data": Data, "optim": Optim, "auxiliary": Auxiliary}
NUMBERS = {int: "a whole number", float: "a number"}


def override(recipe: Recipe, assignments: Sequence[str]) -> tuple[Recipe, tuple[str, ...]]:
    """The recipe with its fields set by "path=value", and those assignments that changed something.

    >>> tiny = Recipe("table3/rn", "cpu", Data("sort-of-clevr-v1"), "sort-of-clevr/rn", Optim("adam", 1e-3), 8, 2)
    >>> changed, assignments = override(tiny, ["optim.lr=0.002", "optim.milestones=5,8", "data.train=none"])
    >>> changed.optim.lr, changed.optim.milestones, assignments
    (0.002, (5, 8), ('optim.lr=0.002', 'optim.milestones=5,8'))
    """
    changed, last = recipe, {}
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        if not equals:
            raise BcnError(f"--set {assignment}: a field is set by path=value, for example optim.lr=0.001")
        changed, last[path] = _assign(changed, path, text), text
    return changed, tuple(f"{path}={text}" for path, text in last.items() if _assign(recipe, path, text) != recipe)


def paths() -> list[str]:
    """Every path that `override` accepts, besides arguments.NAME for an argument of the model and auxiliary=none."""
    special = (*DESCRIPTIVE, "name", "scale", "arguments", "start", *PARTS)
    return [
        *(field.name for field in fields(Recipe) if field.name not in special),
        *(f"{name}.{field.name}" for name, part in PARTS.items() for field in fields(part)),
    ]


def assignments(recipe: Recipe) -> list[str]:
    """Every field of a recipe as an assignment that `override` accepts.

    >>> tiny = Recipe("table3/rn", "cpu", Data("sort-of-clevr-v1"), "sort-of-clevr/rn", Optim("adam", 1e-3), 8, 2)
    >>> [line for line in assignments(tiny) if line.startswith(("optim.lr", "batch_size", "optim.clip"))]
    ['batch_size=8', 'optim.lr=0.001', 'optim.clip_norm=none']
    """
    lines = []
    for path in paths():
        head, _, tail = path.partition(".")
        part = getattr(recipe, head)
        if not (tail and part is None):
            lines.append(f"{path}={_text(getattr(part, tail) if tail else part)}")
    return [*lines, *(f"arguments.{name}={_text(value)}" for name, value in recipe.arguments)]


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _assign(recipe: Recipe, path: str, text: str) -> Recipe:
    head, _, tail = path.partition(".")
    if head == "arguments" and tail:
        return replace(recipe, arguments=tuple(sorted({**dict(recipe.arguments), tail: _argument(text)}.items())))
    if path == "auxiliary" and text.lower() == "none":
        return replace(recipe, auxiliary=None)
    if path not in paths():
        raise did_you_mean("field", path, paths())
    if not tail:
        return replace(recipe, **{head: _parse(get_type_hints(Recipe)[head], text, path)})
    part: Any = getattr(recipe, head) or Auxiliary()
    part = replace(part, **{tail: _parse(get_type_hints(type(part))[tail], text, path)})
    changed: Any = None if part == Auxiliary() else part
    return replace(recipe, **{head: changed})


def _argument(text: str) -> str | bool | int | float | tuple[int, ...]:
    """A model's argument, which has no declared type here: true, false, a number, several with commas, else the text.

    >>> _argument("10"), _argument("64,64"), _argument("64,"), _argument("xy"), _argument("false"), _argument("0.1")
    (10, (64, 64), (64,), 'xy', False, 0.1)
    """
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if re.fullmatch(r"\d*\.\d+", text):
        return float(text)
    numbers = [item for item in text.split(",") if item]
    if not numbers or not all(item.isdecimal() and len(item) < 10 for item in numbers):
        return text
    return tuple(map(int, numbers)) if "," in text else int(text)


def _parse(kind: Any, text: str, path: str) -> Any:
    """The text of a command line as a value of the field's type."""
    if get_origin(kind) is UnionType:
        if text.lower() == "none":
            return None
        (kind,) = (choice for choice in get_args(kind) if choice is not NoneType)
    if get_origin(kind) is tuple:
        each = f"each of {path}, which commas separate,"
        return tuple(_parse(get_args(kind)[0], item, each) for item in text.split(",") if item)
    if get_origin(kind) is Literal:
        if text not in get_args(kind):
            raise did_you_mean(path, text, get_args(kind))
        return text
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise BcnError(f"{path} is true or false, and was given {text!r}")
        return text.lower() == "true"
    try:
        return kind(text)
    except ValueError:
        raise BcnError(f"{path} is {NUMBERS[kind]}, and was given {text!r}") from None
