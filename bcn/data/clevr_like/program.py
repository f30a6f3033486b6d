"""Functional programs over scenes, in the vocabulary and JSON of CLEVR's question files: original questions run too.

A program is a list of nodes {"function": "filter_color", "inputs": [0], "value_inputs": ["red"]}; `inputs` are earlier
nodes, the last node gives the answer. Sets of objects are sorted lists of indices.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from bcn.data.vqa.clevr import ATTRIBUTES, KINDS, Program, function_of
from bcn.errors import BcnError, did_you_mean

Scene = dict[str, Any]


class IllPosed(BcnError):
    """A `unique` that met no object, or several: the question has no answer in this scene."""


def answer(program: Program, scene: Scene) -> str:
    """What the program answers about the scene, as CLEVR writes it: "yes", "no", a number, the name of an attribute."""
    value = run(program, scene)[-1]
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        last = function_of(program[-1])
        raise BcnError(f"a program ends with {last!r}, which gives objects: accepted are {', '.join(KINDS)}")
    return str(value)


def run(program: Program, scene: Scene) -> list[Any]:
    """What each node of the program gives."""
    values: list[Any] = []
    for node in program:
        name = function_of(node)
        if name not in _FUNCTIONS:
            raise did_you_mean("function", name, _FUNCTIONS)
        constants = node.get("value_inputs", node.get("side_inputs")) or []
        inputs = [values[index] for index in _earlier(node.get("inputs") or [], len(values))]
        values.append(_FUNCTIONS[name](scene, *inputs, *constants))
    return values


def _earlier(inputs: Sequence[int], nodes: int) -> Sequence[int]:
    """Inputs that are earlier nodes, so that no program runs in a circle."""
    if all(isinstance(index, int) and 0 <= index < nodes for index in inputs):
        return inputs
    raise BcnError(f"node {nodes} of a program has the inputs {inputs}: accepted are earlier nodes, 0 to {nodes - 1}")


def _unique(scene: Scene, objects: Sequence[int]) -> int:
    if len(objects) != 1:
        raise IllPosed(f"ill-posed: {len(objects)} objects where there must be one")
    return objects[0]


def _sorted(objects: Iterable[int]) -> list[int]:
    return sorted(set(objects))


def _filter(attribute: str) -> Callable[..., list[int]]:
    return lambda scene, objects, value: [i for i in objects if scene["objects"][i][attribute] == value]


def _query(attribute: str) -> Callable[..., str]:
    return lambda scene, index: str(scene["objects"][index][attribute])


def _same(attribute: str) -> Callable[..., list[int]]:
    """The other objects that share the attribute."""

    def same(scene: Scene, index: int) -> list[int]:
        value = scene["objects"][index][attribute]
        return [i for i, thing in enumerate(scene["objects"]) if i != index and thing[attribute] == value]

    return same


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "scene": lambda scene: list(range(len(scene["objects"]))),
    "unique": _unique,
    "relate": lambda scene, index, relation: _sorted(scene["relationships"][relation][index]),
    "union": lambda scene, a, b: _sorted([*a, *b]),
    "intersect": lambda scene, a, b: _sorted(set(a) & set(b)),
    "count": lambda scene, objects: len(objects),
    "exist": lambda scene, objects: len(objects) > 0,
    "equal_integer": lambda scene, a, b: a == b,
    "less_than": lambda scene, a, b: a < b,
    "greater_than": lambda scene, a, b: a > b,
}
for _name in ATTRIBUTES:
    _FUNCTIONS[f"filter_{_name}"] = _filter(_name)
    _FUNCTIONS[f"query_{_name}"] = _query(_name)
    _FUNCTIONS[f"same_{_name}"] = _same(_name)
    _FUNCTIONS[f"equal_{_name}"] = lambda scene, a, b: a == b
