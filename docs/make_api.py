"""Writes docs/reference/api.md from the docstrings of what users import: `python docs/make_api.py`."""

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import bcn

PAGE = Path(__file__).parent / "reference" / "api.md"
SUBJECTS = {
    "Layers": ["bcn.BroadcastConv", "bcn.coordinate_planes", "bcn.insert_broadcast"],
    "Relations": ["bcn.layers.relation.MultiRelation", "bcn.layers.relation.PairRelation"],
    "Models": ["bcn.create_model", "bcn.list_models"],
    "Trained models": [
        "bcn.load",
        "bcn.Reasoner",
        "bcn.inference.answer.Answer",
        "bcn.inference.broadcast.Broadcast",
        "bcn.inference.export.export",
    ],
    "Data": ["bcn.data.sort_of_clevr.make_sort_of_clevr"],
    "Errors": ["bcn.BcnError"],
}


def page() -> str:
    """The whole page."""
    named = {name.removeprefix("bcn.") for names in SUBJECTS.values() for name in names}
    assert set(bcn.__all__) - {"__version__"} <= named, "a public name is not on the page"
    parts = ["# The Python interface", "Made from the docstrings by `python docs/make_api.py`."]
    for subject, names in SUBJECTS.items():
        parts.append(f"## {subject}")
        for name in names:
            parts += describe(name)
    return "\n\n".join(parts) + "\n"


def describe(name: str) -> list[str]:
    """A function, or a class with its public methods and properties."""
    module, _, last = name.rpartition(".")
    thing = getattr(import_module(module), last)
    parts = [f"### `{name}{signature(thing)}`", *docstring(thing)]
    if not inspect.isclass(thing):
        return parts
    for method, value in vars(thing).items():
        plain = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if method.startswith("_") or not inspect.isfunction(plain) or not plain.__doc__:
            continue
        shown = "" if isinstance(value, property) else signature(plain)
        parts += [f"#### `{last}.{method}{shown}`", *docstring(plain)]
    return parts


def signature(thing: Any) -> str:
    """The parameters without `self`, names without their modules."""
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return ""
    given = inspect.signature(thing)
    kept = [each for each in given.parameters.values() if each.name != "self"]
    shown = str(given.replace(parameters=kept))
    shown = shown.removesuffix(" -> None") if inspect.isclass(thing) else shown
    return re.sub(r"\b(?:[A-Za-z_]\w*\.)+(?=[A-Za-z])", "", shown)


def docstring(thing: Any) -> list[str]:
    """Its paragraphs, with examples and indented lines as blocks."""
    text = inspect.cleandoc(thing.__doc__ or "")
    if text.startswith(f"{thing.__name__}("):  # what a dataclass says of itself
        text = ""
    blocks = re.split(r"\n\s*\n", text) if text else []
    return [f"```pycon\n{block}\n```" if block.startswith(">>>") else block for block in blocks]


if __name__ == "__main__":
    PAGE.write_text(page())
    print(PAGE)
