"""Writes docs/reference/api.md from the docstrings of what users import: `python docs/make_api.py`."""

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import bcn

PAGE = Path(__file__).parent / "reference" / "api.md"
WIDTH = 110
SUBJECTS = {
    "Layers": [
        "bcn.BroadcastConv",
        "bcn.BroadcastBlock",
        "bcn.coordinate_planes",
        "bcn.insert_broadcast",
        "bcn.balance_broadcast",
    ],
    "Relations": ["bcn.MultiRelation", "bcn.PairRelation"],
    "Models": ["bcn.create_model", "bcn.list_models"],
    "Trained models": [
        "bcn.load",
        "bcn.Reasoner",
        "bcn.inference.answer.Answer",
        "bcn.inference.broadcast.Broadcast",
        "bcn.export",
        "bcn.inference.hub.PretrainedModel",
    ],
    "Data": [
        "bcn.open_dataset",
        "bcn.data.sort_of_clevr.make_sort_of_clevr",
        "bcn.data.loader.collate",
        "bcn.data.loader.TransformedDataset",
        "bcn.data.export.export_dataset",
    ],
    "Training": ["bcn.train"],
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
    parts = [f"### `{name}`", *signature(thing, last), *docstring(thing)]
    if not inspect.isclass(thing):
        return parts
    for method, value in vars(thing).items():
        plain = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if method.startswith("_") or not inspect.isfunction(plain) or not plain.__doc__:
            continue
        shown = [] if isinstance(value, property) else signature(plain, method)
        parts += [f"#### `{last}.{method}`", *shown, *docstring(plain)]
    return parts


def signature(thing: Any, name: str) -> list[str]:
    """The parameters without `self`, names without their modules; one to a line where one line is too short."""
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return []
    given = inspect.signature(thing)
    kept = [each for each in given.parameters.values() if each.name not in ("self", "cls")]
    given = given.replace(parameters=kept)
    if inspect.isclass(thing):
        given = given.replace(return_annotation=inspect.Signature.empty)
    line = _plain(f"{name}{given}")
    if len(line) > WIDTH:
        parameters, names = [str(each) for each in kept], [each.name for each in kept]
        keyword_only = [each.name for each in kept if each.kind is inspect.Parameter.KEYWORD_ONLY]
        if keyword_only:
            parameters.insert(names.index(keyword_only[0]), "*")
        head, _, result = line.rpartition(")")
        line = (
            "\n    ".join([head.partition("(")[0] + "(", *(f"{_plain(each)}," for each in parameters)]) + f"\n){result}"
        )
    return [f"```text\n{line}\n```"]


def _plain(shown: str) -> str:
    return re.sub(r"\b(?:[A-Za-z_]\w*\.)+(?=[A-Za-z])|~", "", shown)


def docstring(thing: Any) -> list[str]:
    """Its paragraphs, with examples as blocks of code and arguments as a list."""
    text = inspect.cleandoc(thing.__doc__ or "")
    if text.startswith(f"{thing.__name__}("):  # what a dataclass says of itself
        text = ""
    return [_block(block) for block in re.split(r"\n\s*\n", text)] if text else []


def _block(block: str) -> str:
    if block.startswith(">>>"):
        return f"```pycon\n{block}\n```"
    heading, _, lines = block.partition("\n")
    if heading not in ("Args:", "Attributes:", "Returns:", "Raises:"):
        return block
    items = re.split(r"\n(?=\S)", inspect.cleandoc(lines))
    return "\n".join("- " + re.sub(r"^(\w+(?:, \w+)*): ", r"`\1`: ", " ".join(item.split())) for item in items)


if __name__ == "__main__":
    PAGE.write_text(page())
    print(PAGE)
